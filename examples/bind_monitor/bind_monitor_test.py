#!/usr/bin/env python3
"""Known calls of bind(), made by a process (kernel) or written on a pipe (native): both builds print each exactly."""
import ctypes
import os
import re
import signal
import socket
import struct
import subprocess
import sys

from dwell_e2e import OUT, check, finish, run, skip

KERNEL = os.path.join(os.environ["EXAMPLES"], "bind_monitor")
NATIVE = KERNEL + "_native"
NAME = "binder"
UNREADABLE = None


def inet(address, port):
    return struct.pack("=H", socket.AF_INET) + struct.pack("!H", port) + socket.inet_aton(address) + bytes(8)


def inet6(address, port):
    return struct.pack("=H", socket.AF_INET6) + struct.pack("!HI", port, 0) + socket.inet_pton(socket.AF_INET6, address) + bytes(4)


def unix(path):
    return struct.pack("=H", socket.AF_UNIX) + path


# (family of the socket, address, its length if another is told, what the line says)
CALLS = [
    (socket.AF_INET, inet("127.0.0.1", 0), None, "inet 127.0.0.1:0"),
    (socket.AF_INET, inet("127.1.2.3", 40001), None, "inet 127.1.2.3:40001"),
    (socket.AF_INET6, inet6("::1", 40002), None, "inet6 [::1]:40002"),
    (socket.AF_INET6, inet6("::ffff:127.0.0.1", 65535), None, "inet6 [::ffff:127.0.0.1]:65535"),
    (socket.AF_UNIX, unix(OUT.encode() + b"/path\0behind"), None, f"unix {OUT}/path"),
    (socket.AF_UNIX, unix(b"\0abstract\0\x1b[2J"), None, r"unix @abstract\x00\x1b[2J"),
    (socket.AF_UNIX, unix(b""), None, "unix, a name of the kernel's choice"),
    # Calls that fail are told as well.
    (socket.AF_INET, inet("127.0.0.1", 40003), 8, "inet, cut short"),
    (socket.AF_INET, struct.pack("=H", 99) + bytes(126), None, "family 99, 128 bytes"),
    (socket.AF_INET, inet("127.0.0.1", 40004), 0, "no address"),
    (socket.AF_INET, inet("127.0.0.1", 40005), 129, "no address"),
    (socket.AF_INET, inet("127.0.0.1", 40006), 0xffffffff, "no address"),
    (socket.AF_INET, UNREADABLE, 16, "no address"),
]


def lines_of(pid):
    return [f"{pid} {NAME}: {line}" for *_, line in CALLS]


def monitor_natively(pid):
    """The calls as lines: process, name, length, address."""
    text = "".join(f"{pid} {NAME} {len(address) if length is None else length} {'-' if address is UNREADABLE else address.hex()}\n"
                   for _, address, length, _ in CALLS)
    return run([NATIVE], stdin=None, input=text)


def make_calls():
    """In a process of its own, which has the name that the lines show. Returns its id."""
    pid = os.fork()
    if pid == 0:
        libc = ctypes.CDLL(None, use_errno=True)
        libc.prctl(15, NAME.encode(), 0, 0, 0)  # PR_SET_NAME
        for family, address, length, _ in CALLS:
            caller = socket.socket(family, socket.SOCK_DGRAM)
            memory = ctypes.c_void_p(8) if address is UNREADABLE else ctypes.create_string_buffer(address, 128)
            libc.bind(caller.fileno(), memory, ctypes.c_uint(len(address) if length is None else length))
            caller.close()
        os._exit(0)
    os.waitpid(pid, 0)
    return pid


def with_tracefs():
    """Mounts tracefs for this script alone where the machine has none mounted."""
    if os.geteuid() != 0:
        skip("attaching a program to a tracepoint needs root")
    if not os.path.exists("/sys/kernel/tracing/events") and "OWN_MOUNTS" not in os.environ:
        os.environ["OWN_MOUNTS"] = "1"
        os.rmdir(OUT)  # the script that starts makes its own
        os.execvp("unshare", ["unshare", "--mount", sys.executable, *sys.argv])
    if "OWN_MOUNTS" in os.environ:
        run(["mount", "-t", "tracefs", "tracefs", "/sys/kernel/tracing"])
    if not os.path.exists("/sys/kernel/tracing/events/syscalls/sys_enter_bind"):
        skip("this kernel has no tracepoint syscalls:sys_enter_bind (CONFIG_FTRACE_SYSCALLS), or tracefs cannot be mounted")


def monitor_in_kernel():
    monitor = subprocess.Popen([KERNEL], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    said = monitor.stderr.readline()
    pid = make_calls()
    monitor.send_signal(signal.SIGINT)
    shown, rest = monitor.communicate(timeout=30)
    check(said == "monitoring\n" and monitor.returncode == 0, f"exit {monitor.returncode}: {said}{rest}")
    check(", 0 lost" in rest, f"nothing is lost: {rest.strip()}")
    # Others on this machine may bind meanwhile.
    return pid, [line for line in shown.splitlines() if line.startswith(f"{pid} ")]


def check_readme():
    """The native command of README.md prints the line that it shows."""
    with open(os.path.join(os.path.dirname(__file__), "README.md"), encoding="utf-8") as f:
        text = f.read()
    command = re.search("echo .*_native", text).group().replace("build/dev/examples", os.environ["EXAMPLES"])
    shown = run(["sh", "-c", command]).stdout.strip()
    check(shown != "" and f"`{shown}`" in text, f"README.md: {shown}")


def check_lines(where, shown, pid):
    for got, wanted in zip(shown, lines_of(pid)):
        check(got == wanted, f"{where}: {got}" + ("" if got == wanted else f", not: {wanted}"))
    check(len(shown) == len(CALLS), f"{where}: {len(shown)} lines of {len(CALLS)}")


if sys.argv[1] == "kernel":
    with_tracefs()
    pid, shown = monitor_in_kernel()
    check_lines("kernel", shown, pid)
    check(monitor_natively(pid).stdout.splitlines() == shown, "both builds print the same")
else:
    native = monitor_natively(4711)
    check_lines("native", native.stdout.splitlines(), 4711)
    check(native.returncode == 0 and f"{len(CALLS)} binds, 0 lost" in native.stderr, f"native: {native.stderr.strip()}")
    check_readme()
    refused = run([NATIVE], stdin=None, input="4711 binder\n")
    check(refused.returncode == 1 and refused.stdout == "", f"no call: {refused.stderr.strip()}")
finish()
