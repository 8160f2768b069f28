#!/usr/bin/env python3
"""A uretprobe hides a return address: the stack shows [uprobes] there, says that it is incomplete, and every nap is counted."""
import ctypes
import os
import platform
import struct

from dwell_e2e import check, finish, program, record_command, run, skip

PMU = "/sys/bus/event_source/devices/uprobe"
PERF_EVENT_OPEN = 298
PERF_FLAG_FD_CLOEXEC = 8

if platform.machine() != "x86_64" or not os.path.exists(f"{PMU}/type"):
    skip("this kernel has no perf events for uprobes")


def file_offset(path, function):
    """Of a function: its address, moved as its segment is."""
    address = next(int(line.split()[0], 16) for line in run(["nm", path]).stdout.split("\n") if line.endswith(f" {function}"))
    for line in run(["readelf", "-lW", path]).stdout.split("\n"):
        words = line.split()
        if words[:1] == ["LOAD"] and int(words[2], 16) <= address < int(words[2], 16) + int(words[4], 16):
            return address - int(words[2], 16) + int(words[1], 16)
    raise RuntimeError(f"{function} is in no segment")


def open_uretprobe(path, offset):
    """A perf event that holds a uretprobe for all processes as long as its descriptor is open."""
    with open(f"{PMU}/type") as f:
        kind = int(f.read())
    with open(f"{PMU}/format/retprobe") as f:
        bit = int(f.read().strip().removeprefix("config:"))
    name = ctypes.create_string_buffer(path.encode())
    attr = bytearray(128)
    struct.pack_into("<IIQ", attr, 0, kind, len(attr), 1 << bit)
    struct.pack_into("<QQ", attr, 56, ctypes.addressof(name), offset)
    libc = ctypes.CDLL(None, use_errno=True)
    fd = libc.syscall(PERF_EVENT_OPEN, (ctypes.c_char * len(attr)).from_buffer(attr), -1, 0, -1, PERF_FLAG_FD_CLOEXEC)
    if fd < 0:
        skip(f"no uretprobe can be set here: {os.strerror(ctypes.get_errno())}")
    return fd


probe = open_uretprobe(program("nap"), file_offset(program("nap"), "inner"))
profile, truth, _ = record_command([program("nap"), "--waits", "20"])
os.close(probe)
naps = profile.rows(cause={"clock_nanosleep"})
check(sum(r["count"] for r in naps) == sum(line["waits"] for line in truth), "every nap is there")
for row in naps:
    frames = [f for f in profile.frames(row) if f["kind"] == "user"]
    names = [f["name"] for f in frames]
    modules = [profile.document["modules"][f["module"]]["path"] for f in frames]
    check("inner" in names, f"the function with the probe has its name: {names}")
    check(modules[-1] == "[uprobes]" and names[-2] == "inner", f"its caller is the page of probes: {names[-1]}")
    check(not profile.document["stacks"][row["stack"]]["user_complete"], "the stack says that it is incomplete")
without, _, _ = record_command([program("nap"), "--waits", "5"])
check(all("outer" in without.functions(r) for r in without.rows(cause={"clock_nanosleep"})), "without the probe it is whole")
finish()
