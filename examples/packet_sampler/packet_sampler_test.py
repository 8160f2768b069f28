#!/usr/bin/env python3
"""Known UDP packets, through a pair of interfaces (kernel) or a pipe (native): both builds print each with its bytes.

The packets are whole frames, sent as they are, in a network namespace of the test's own.
"""
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import time

from dwell_e2e import OUT, check, finish, run, skip

KERNEL = os.path.join(os.environ["EXAMPLES"], "packet_sampler")
NATIVE = KERNEL + "_native"
CAPTURE = 128


def udp_frame(port, data):
    """Ethernet, IPv4 and UDP, with the checksum of the IPv4 header; UDP's own may be absent."""
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 28 + len(data), port, 0, 64, 17, 0, bytes([10, 9, 8, 7]), bytes([10, 9, 8, 6]))
    total = sum(struct.unpack("!10H", ip))
    total = (total & 0xffff) + (total >> 16)
    ip = ip[:10] + struct.pack("!H", ~(total + (total >> 16)) & 0xffff) + ip[12:]
    ethernet = b"\x02\x00\x00\x00\x00\x01" + b"\x02\x00\x00\x00\x00\x02" + b"\x08\x00"
    return ethernet + ip + struct.pack("!HHHH", port, 9, 8 + len(data), 0) + data


# Every padding of the kernel's ring, both sides of the capture's end, and the longest that the interface takes.
SIZES = [*range(0, 9), 60, CAPTURE - 43, CAPTURE - 42, CAPTURE - 41, 700, 1472]
FRAMES = [udp_frame(1000 + i, bytes((i + k) % 251 for k in range(size))) for i, size in enumerate(SIZES)]
LINES = [f"{len(frame)} bytes: {frame[:CAPTURE].hex()}" for frame in FRAMES]


def sample_natively(frames, *options):
    return run([NATIVE, *options], stdin=None, input="".join(frame.hex() + "\n" for frame in frames))


def wait_until(holds, sentence):
    end = time.monotonic() + 20
    while not holds():
        if time.monotonic() > end:
            return check(False, sentence)
        time.sleep(0.01)


def received():
    """Packets that the sampled end has had: its program runs before they are counted."""
    with open("/proc/net/dev") as f:
        return next(int(line.split()[2]) for line in f if line.strip().startswith("sampled:"))


def sample_in_kernel(frames, *options):
    """Sends the frames into one end of a pair while packet_sampler is at the other."""
    before = received()
    sampler = subprocess.Popen([KERNEL, "sampled", *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    said = sampler.stderr.readline()
    if "sampling" in said:
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sender:
            sender.bind(("sender", 0))
            for frame in frames:
                sender.send(frame)
        # The other end may get them later, in a thread of the kernel's.
        wait_until(lambda: received() - before == len(frames), f"{len(frames)} packets have come")
    sampler.send_signal(signal.SIGINT)
    shown, rest = sampler.communicate(timeout=30)
    return subprocess.CompletedProcess(sampler.args, sampler.returncode, shown, said + rest)


def in_own_network():
    """Starts this script again in a network namespace of its own, and makes the pair there."""
    if os.geteuid() != 0:
        skip("attaching a program to an interface needs root")
    if "OWN_NETWORK" not in os.environ:
        os.environ["OWN_NETWORK"] = "1"
        os.rmdir(OUT)  # the script that starts makes its own
        os.execvp("unshare", ["unshare", "--net", sys.executable, *sys.argv])
    if os.path.exists("/proc/sys/net/ipv6"):  # which would send packets of its own
        with open("/proc/sys/net/ipv6/conf/default/disable_ipv6", "w") as f:
            f.write("1")
    for command in ("add sender type veth peer name sampled", "set sender up", "set sampled up"):
        done = run(["ip", "link", *command.split()])
        if done.returncode != 0:
            skip(f"this kernel makes no pair of interfaces: ip link {command}: {done.stderr.strip()}")
    wait_until(lambda: "state UP" in run(["ip", "link", "show", "sender"]).stdout, "the interfaces are up")


def check_readme():
    """The native command of README.md prints the line that it shows."""
    with open(os.path.join(os.path.dirname(__file__), "README.md"), encoding="utf-8") as f:
        text = f.read()
    command = re.search("echo .*_native", text).group().replace("build/dev/examples", os.environ["EXAMPLES"])
    shown = run(["sh", "-c", command]).stdout.strip()
    check(shown != "" and f"`{shown}`" in text, f"README.md: {shown}")


def check_lines(where, done, frames, lines):
    shown = done.stdout.splitlines()
    check(done.returncode == 0 and shown == lines, f"{where}: {len(shown)} lines of {len(lines)}, byte by byte (exit {done.returncode})")
    check(f"{len(frames)} samples, 0 lost" in done.stderr, f"{where}: {done.stderr.strip()}")


def check_share(where, done):
    """600 packets, one in 3: 200 are expected, with a standard deviation of 12."""
    shown = done.stdout.splitlines()
    check(100 < len(shown) < 300 and set(shown) == {LINES[0]}, f"{where}: {len(shown)} of 600 packets are sampled at one in 3")


if sys.argv[1] == "kernel":
    in_own_network()
native = sample_natively(FRAMES)
check_lines("native", native, FRAMES, LINES)
if sys.argv[1] == "native":
    check_share("native", sample_natively(FRAMES[:1] * 600, "3"))
    refused = sample_natively([b""], "0")
    check(refused.returncode == 2 and "usage" in refused.stderr, f"one in 0 is refused: {refused.stderr.strip()}")
    check_readme()
    refused = run([NATIVE], stdin=None, input="12x\n")
    check(refused.returncode == 1 and "12x" not in refused.stdout, f"no packet: {refused.stderr.strip()}")
else:
    kernel = sample_in_kernel(FRAMES)
    check_lines("kernel", kernel, FRAMES, LINES)
    check(kernel.stdout == native.stdout, "both builds print the same")
    check_share("kernel", sample_in_kernel(FRAMES[:1] * 600, "3"))
    missing = run([KERNEL, "no_such"])
    check(missing.returncode == 1 and "no_such" in missing.stderr, f"no interface: {missing.stderr.strip()}")
finish()
