#!/usr/bin/env python3
"""Where walks of other tools go wrong (docs/stacks.md has the list): a nap before the frame pointer is set up, code that was
moved to memory without a file, a PID namespace, a file that cannot be read, a recorder that is short of memory."""
import os
import shutil

from dwell_e2e import DWELL, Gated, Recorder, check, finish, load, out, program, record_command, run
from truth import check_conservation, compare_waits

WITHOUT_READING = ["setpriv", "--bounding-set", "-dac_override,-dac_read_search", "--inh-caps", "-all"]


def before_the_frame_pointer():
    """U14: the caller is not left out, though rbp is still its own."""
    profile, truth, _ = record_command([program("early")], name="early.dwell")
    rows = compare_waits(profile, truth[0], {"nanosleep"})
    functions = profile.user_functions(rows[0])
    check(all(profile.user_functions(r)[:3] == ["early_nap", "early_caller", "main"] for r in rows), f"early: {functions}")
    check(all(profile.stack(r)["user_complete"] for r in rows), "early: whole")


def moved_code():
    """U33: code that took the place of its file's mapping keeps the file's unwind data and names."""
    moved = Gated("remapped")
    with open(f"/proc/{moved.pid}/maps", encoding="utf-8") as maps:
        code = [line.split() for line in maps if " r-xp " in line]
    check(any(len(words) == 5 for words in code), "remapped: its code lies in a mapping without a file")
    recorder = Recorder("-p", str(moved.pid), name="moved.dwell").attached()
    truth = moved.work()
    profile = recorder.profile()
    moved.close()
    rows = compare_waits(profile, truth[0], {"clock_nanosleep"})
    functions = profile.user_functions(rows[0])
    check(all(profile.user_functions(r)[:4] == ["nap", "remapped_inner", "remapped_outer", "main"] for r in rows), f"remapped: {functions}")
    check(all(profile.stack(r)["walk_end"] == "root" and not profile.stack(r)["by_pointer"] for r in rows), "by unwind data up to the root")


def in_a_pid_namespace():
    """U29: the number inside is not that of the tables."""
    made = run(["unshare", "--pid", "--fork", "--mount-proc", "true"])
    if made.returncode != 0:
        print(f"no PID namespace can be made here: {made.stderr.strip()}")
        return
    profile, truth, _ = record_command(["unshare", "--pid", "--fork", "--mount-proc", program("frames"), "--waits", "5"], name="inside.dwell")
    for line in truth:
        if line["name"] != "chain":
            continue
        rows = profile.rows(name="chain", cause={"clock_nanosleep"})
        check(rows and all({"libc_nap", "chain_inner", "chain_outer"} <= set(profile.user_functions(r)) for r in rows),
              f"in a PID namespace: {profile.user_functions(rows[0])[:6]}")
        check(all(profile.stack(r)["walk_end"] == "root" for r in rows), "by unwind data up to the root")


def unreadable():
    """U34: no table and no names, said with the reason; everything else is as always."""
    if os.geteuid() != 0 or run([*WITHOUT_READING, "true"]).returncode != 0:
        print("setpriv cannot take reading away here")
        return
    secret = out("secret")
    shutil.copy(program("bare"), secret)
    os.chmod(os.path.dirname(secret), 0o755)
    os.chown(secret, 65534, 65534)
    os.chmod(secret, 0o711)
    path = out("secret.dwell")
    done = run([*WITHOUT_READING, DWELL, "record", "-o", path, "--", secret])
    if not check(done.returncode == 0, f"unreadable: recorded, exit {done.returncode} {done.stderr.strip()[-300:]}"):
        return
    profile = load(path)
    check_conservation(profile, "unreadable: ")
    check(sum(r["count"] for r in profile.rows(cause={"clock_nanosleep"})) == 10, "unreadable: all ten naps")
    modules = profile.document["modules"]
    reasons = [u["reason"] for u in profile.document["unresolved"] if modules[u["module"]]["path"].endswith("/secret")]
    check(any("EACCES" in reason for reason in reasons), f"unreadable: {reasons}")
    cut = [m for m in profile.document["stack_health"]["modules"] if modules[m["module"]]["path"].endswith("/secret")]
    check(cut and cut[0]["cut"]["frames"] > 0, f"unreadable: where walks were cut: {[m['cut'] for m in cut]}")


def memory_folder(limit_bytes):
    """A control group with so much memory, or none."""
    for root, name in (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")):
        folder = os.path.join(root, f"dwell_test_{os.getpid()}")
        try:
            os.mkdir(folder)
            with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
                f.write(str(limit_bytes))
            return folder
        except OSError:
            if os.path.isdir(folder):
                os.rmdir(folder)
    return None


def short_of_memory():
    """U22: it records, or says that memory is short; it never hangs, and leaves nothing behind."""
    for limit in (256 << 20, 24 << 20):
        folder = memory_folder(limit)
        if folder is None:
            print("no control group with a memory limit can be made here")
            return
        path = out("small.dwell")
        script = f"echo $$ > {folder}/cgroup.procs && exec {DWELL} record -q -o {path} -- {program('nap')} --waits 20"
        done = run(["sh", "-c", script], timeout=60)
        recorded = done.returncode == 0 and sum(r["count"] for r in load(path).rows(cause={"clock_nanosleep"})) == 20
        refused = done.returncode in (1, 3) and "memory" in done.stderr.lower()
        killed = done.returncode in (-9, 137)
        check(recorded or refused or killed and limit < 64 << 20,
              f"{limit >> 20} MiB: exit {done.returncode} {done.stderr.strip()[:200]}")
        if os.path.exists(path):
            os.unlink(path)
        os.rmdir(folder)


before_the_frame_pointer()
moved_code()
in_a_pid_namespace()
unreadable()
short_of_memory()
finish()
