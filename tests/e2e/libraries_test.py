#!/usr/bin/env python3
"""A process in another root: names come from its own files, never from the host's; hostile files neither hang nor crash."""
import os
import shutil
import subprocess
import time

from dwell_e2e import OUT, Recorder, check, finish, load, out, program, record_command, run, skip

if run(["unshare", "-m", "true"]).returncode != 0:
    skip("no private mount namespace can be made here")


def jail():
    """A root with /app/prog = nap and its libraries."""
    root = out("root")
    shutil.rmtree(root, ignore_errors=True)
    os.makedirs(f"{root}/app")
    shutil.copy(program("nap"), f"{root}/app/prog")
    for line in run(["ldd", program("nap")]).stdout.split("\n"):
        for word in line.split():
            if word.startswith("/"):
                os.makedirs(root + os.path.dirname(word), exist_ok=True)
                shutil.copy(word, root + word)
    return root


def record_jailed(label, root, after_start=lambda: None, path="/app/prog"):
    process = subprocess.Popen(["unshare", "-m", "chroot", root, path, "--forever", "--us", "5000"], stdout=subprocess.DEVNULL)
    time.sleep(0.4)
    after_start()
    started = time.monotonic()
    recorder = Recorder("-p", str(process.pid), "-d", "1s", name="jail.dwell")
    seconds, code, said = recorder.wait(timeout=20)
    check(code == 0 and time.monotonic() - started < 6, f"{label}: exit {code} after {seconds:.1f} s {said.strip()[-200:] if code else ''}")
    process.kill()
    process.wait()
    return load(recorder.path)


def naps(profile):
    return [r for r in profile.all_rows if r["cause"] == "clock_nanosleep"]


# The host has another program at the path that the jailed one has inside its root.
host_app = not os.path.exists("/app")
if host_app:
    os.makedirs("/app")
    shutil.copy(program("uniq"), "/app/prog")
try:
    profile = record_jailed("a process in another root", jail())
    names = {name for r in naps(profile) for name in profile.user_functions(r)}
    check({"nap", "one_nap", "inner"} <= names, f"its own functions: {sorted(names)}")
    check(not [n for n in names if n.startswith("turn_")], "none of the host's program of that path")
finally:
    if host_app:
        shutil.rmtree("/app")


def replace_with(kind):
    """After the start the program's file becomes something else at the same path; the mapped file is deleted."""
    path = out("root") + "/app/prog"
    os.unlink(path)
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "endless":
        os.symlink("/dev/zero", path)
    elif kind == "truncated":
        shutil.copy(program("nap"), path)
        os.truncate(path, 777)


for kind in ("fifo", "endless", "truncated", "gone"):
    profile = record_jailed(f"file replaced ({kind})", jail(), lambda k=kind: replace_with(k))
    rows = naps(profile)
    check(rows and all(profile.frames(r) for r in rows), f"file replaced ({kind}): {len(rows)} rows, every frame has a text: "
          f"{[f['name'] for f in profile.frames(rows[0])][-3:]}")


def damage(name, edit):
    """A program that the kernel runs although its section headers lie."""
    with open(program("nap"), "rb") as f:
        data = bytearray(f.read())
    edit(data)
    path = out(name)
    with open(path, "wb") as f:
        f.write(data)
    os.chmod(path, 0o755)
    return path


def section_headers(data):
    return int.from_bytes(data[0x28:0x30], "little"), int.from_bytes(data[0x3a:0x3c], "little"), int.from_bytes(data[0x3c:0x3e], "little")


def huge_symbol_table(data):
    offset, size, count = section_headers(data)
    for i in range(count):
        at = offset + i * size
        if int.from_bytes(data[at + 4:at + 8], "little") in (2, 11):
            data[at + 0x20:at + 0x28] = (0xffff_ffff_ff00).to_bytes(8, "little")


def endless_loop_of_links(data):
    offset, size, count = section_headers(data)
    for i in range(count):
        data[offset + i * size + 0x28:offset + i * size + 0x2c] = i.to_bytes(4, "little")


EDITS = {"section size 0": lambda d: d.__setitem__(slice(0x3a, 0x3c), b"\0\0"),
         "section count 65535": lambda d: d.__setitem__(slice(0x3c, 0x3e), b"\xff\xff"),
         "section table beyond the file": lambda d: d.__setitem__(slice(0x28, 0x30), b"\xf0\xff\xff\xff\xff\xff\xff\x7f"),
         "a symbol table of 256 TB": huge_symbol_table, "sections linked to themselves": endless_loop_of_links}
for label, edit in EDITS.items():
    profile, truth, done = record_command([damage("damaged", edit), "--us", "5000", "--waits", "40"], timeout=20)
    count = sum(r["count"] for r in naps(profile))
    memory = profile.document["cost"]["user_memory_bytes"]
    check(count == 40, f"{label}: all {count} naps, frames {[f['name'] for f in profile.frames(naps(profile)[0])][-4:]}, {memory / 1e6:.0f} MB")

odd = os.path.join(OUT, "odd\nname (deleted)")
shutil.copy(program("nap"), odd)
profile, truth, _ = record_command([odd, "--waits", "10"])
names = {name for r in naps(profile) for name in profile.user_functions(r)}
check({"nap", "inner"} <= names, f"a file name with a newline and ' (deleted)' still gives names: {sorted(names)}")
finish()
