#!/usr/bin/env python3
"""Dwell on another kernel. usage: guest_test.py SERIES STORY CACHE, e.g. guest_test.py 6.1 recordings build/dev/guest

Times under software emulation: the clock runs by the host's, but a switch takes some 50 us and four virtual CPUs share
two real ones, so a wait may be 500 us away from the program's clock and long ones 5 %. A guest whose timings were off
is booted once more: other load on the machine shows in it as running time. Counts stay exact.
"""
import os
import shutil
import sys
import tempfile

os.environ.setdefault("SHORT_WAIT_SLACK_NS", "500000")
os.environ.setdefault("LONG_WAIT_SLACK", "0.05")
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))

import json

import guest
from dwell_e2e import DWELL, Profile, check, finish, json_lines, program, quietest, skip, total
from truth import but_printing, check_conservation, check_no_glue, check_nothing_lost, compare_waits

PROGRAMS = ["nap", "frames", "spin2", "sleeper", "hop", "churn", "lock", "uniq"]
SOAK_SECONDS = int(os.environ.get("SOAK_SECONDS", "15"))
BOOTS = {"recordings": {"smp": "4"}, "lockdown": {"smp": "2", "append": "lockdown=confidentiality"},
         "event_arrays": {"smp": "4", "append": "maxcpus=2"},
         "possible_cpus": {"smp": "4", "append": "maxcpus=2"},
         "paranoid": {"smp": "1"}, "suspend": {"smp": "2", "append": "mem_sleep_default=deep"},
         "soak": {"smp": "4", "append": f"seconds={SOAK_SECONDS}", "timeout": 400 + 2 * SOAK_SECONDS}}


def read(results, name):
    try:
        with open(os.path.join(results, name), encoding="utf-8", errors="replace") as f:
            return f.read().strip()
    except OSError:
        return ""


def recording(results, name):
    """(profile, truth) of a recording that must have worked."""
    code, said = read(results, f"{name}.code"), read(results, f"{name}.err")
    text = read(results, f"{name}.json")
    if not check(code == "0" and text, f"{name}: recorded, exit {code} {said[-400:] if code != '0' else ''}"):
        return None, []
    profile = Profile(json.loads(text))
    check_conservation(profile, f"{name}: ")
    return profile, json_lines(read(results, f"{name}.truth"))


def refused(results, name, word):
    code, said = read(results, f"{name}.code"), read(results, f"{name}.err")
    check(code == "3" and word.lower() in said.lower() and not read(results, f"{name}.json"),
          f"{name}: exit {code}, the message says {word!r}: {said[:300]}")


def check_recordings(results):
    profile, truth = recording(results, "nap")
    if profile:
        rows = compare_waits(profile, truth[0], {"clock_nanosleep"})
        check(all(r["class"] == "interruptible" for r in rows), "nap: every nap is interruptible, freezable or not")
        check(profile.user_functions(rows[0])[:4] == ["nap", "one_nap", "inner", "outer"], f"nap: {profile.functions(rows[0])}")
        check_no_glue([f for r in rows for f in profile.functions(r)], "nap: ")
        leaves = {profile.functions(r)[0] for r in rows}
        check(leaves == {"do_nanosleep"}, f"nap: the stack begins at the caller of schedule() {leaves}")
        check(any("nanosleep" in f["name"] for f in profile.frames(rows[0]) if f["kind"] == "kernel"), "nap: the kernel's frames are named")
    for name in ("frames", "raw_frames"):
        profile, truth = recording(results, name)
        if profile:
            check_whole_stacks(profile, truth, name)
    profile, truth = recording(results, "spin2")
    for line in truth:
        times = profile.times(tid=line["tid"], name=line["name"])
        rows = profile.rows(tid=line["tid"], name=line["name"])
        printing = times["blocked_ns"] - total(but_printing(rows), "blocked_ns")
        rows = but_printing(rows)
        preempted = total([r for r in rows if r["class"].startswith("preempted")], "count")
        others = [(r["class"], r["cause"], r["count"]) for r in rows if not r["class"].startswith("preempted") and r["class"] != "new"]
        check(not [r for r in rows if r["blocked_ns"]] and preempted >= 0.99 * total([r for r in rows if r["class"] != "new"], "count"),
              f"spin2: {line['name']} was preempted {preempted} times, blocked {times['blocked_ns']} ns, {printing} of it to print; else {others}")
    profile, truth = recording(results, "sleeper")
    for line in truth:
        causes = {"nanosleep": {"clock_nanosleep"}, "poll": {"poll", "ppoll"}, "pipe": {"read"}, "socket": {"recvfrom"}, "condition": {"futex"},
                  "mutex": {"futex"}, "fault": {"page fault"}, "vfork": {"vfork", "clone", "clone3"}}.get(line["what"])
        if causes and "impossible" not in line:
            rows = compare_waits(profile, line, causes, through={"fault": "handle_userfault"}.get(line["what"]))
            if line["what"] == "vfork":
                check({r["class"] for r in rows} <= {"killable", "uninterruptible"}, f"vfork: {sorted({r['class'] for r in rows})}")
    profile, _ = recording(results, "small")
    if profile:
        check(sum(t["times"]["overflow_ns"] for t in profile.threads) + profile.loss("stack")[0] > 0, "small: the losses are counted")
    check_hotplug(results)
    started = len(read(results, "starts").splitlines()) + sum(
        read(results, f"{name}.code") == "0" for name in ("nap", "spin2", "sleeper", "small", "hotplug", "kptr2"))
    check(started == 9, f"it started {started} times of 9 {read(results, 'starts.err')[-200:] if started < 10 else ''}")
    profile, truth = recording(results, "kptr2")
    if profile:
        rows = compare_waits(profile, truth[0], {"clock_nanosleep"})
        named = [f["name"] for r in rows for f in profile.frames(r) if f["how"] == "kallsyms"]
        check(not named and "kptr_restrict" in read(results, "kptr2.err") + json.dumps(profile.document), "kptr2: no kernel name, and the reason is said")
    refused(results, "nobtf", "BTF")


def check_timeline(profile, name):
    """Every interval of the rows is in the timeline or counted as missing, CPUs that came late included."""
    kept, lost = len(profile.document["intervals"]), profile.loss("timeline_ring_full")[0]
    check(kept + lost == profile.loss("timeline_intervals")[0] == total(profile.all_rows, "count") and kept > 0,
          f"{name}: {kept} intervals in the timeline + {lost} missing = {total(profile.all_rows, 'count')} in the rows")


def check_whole_stacks(profile, truth, label):
    """Whole but for the first waits: an emulated CPU takes longer to compile the tables than the program to begin."""
    for line in truth:
        rows = profile.rows(tid=line["tid"], cause={line["what"]})
        cut = total([r for r in rows if not profile.stack(r)["user_complete"]], "count")
        longest = max((profile.user_functions(r) for r in rows), key=len)
        check(cut <= 2, f"{label}: {line['name']}: {cut} of {total(rows, 'count')} waits cut, else {len(longest)} frames from {longest[-1]}")
    rows = [r for line in truth for r in profile.rows(tid=line["tid"]) if profile.user_functions(r)]
    share = total([r for r in rows if profile.stack(r)["user_complete"]]) / max(total(rows), 1)
    by_row = profile.loss("frames_by_row")[0]
    fallback = [w for w in profile.document["warnings"] if "raw tracepoints" in w]
    check(not fallback, f"{label}: this kernel takes the typed probe {fallback}")
    check(share >= 0.95 and by_row > 1000, f"{label}: of its threads {100 * share:.2f} % of the time has a whole stack, {by_row} steps by unwind data")


def check_hotplug(results):
    profile, truth = recording(results, "hotplug")
    if profile:
        check_timeline(profile, "hotplug")
    hop = [line for line in truth if line["name"] == "hop"]
    if not profile or not check(len(hop) == 1, "hotplug: the program ended by itself"):
        return
    compare_waits(profile, hop[0], {"clock_nanosleep"})
    check(read(results, "online") == "0-3", f"hotplug: CPUs online at the end: {read(results, 'online')}")
    check_nothing_lost(profile, "hotplug: ")


def check_paranoid(results):
    for level in ("-1", "2", "3", "4"):
        profile, truth = recording(results, f"{level}.bpf-perfmon")
        if profile:
            compare_waits(profile, truth[0], {"clock_nanosleep"})
        refused(results, f"{level}.bpf", "CAP_PERFMON")
        refused(results, f"{level}.perfmon", "CAP_BPF")
        refused(results, f"{level}.", "CAP_BPF CAP_PERFMON")


def check_event_arrays(results):
    """The tests of src/event_array: two of four CPUs, then a hole in the middle, then CPUs that come and go."""
    check(read(results, "holes").split() == ["0-3", "0,2-3"], f"CPUs possible and online: {read(results, 'holes').split()}")
    for name in ("never_present", "holes", "exactness"):
        said = read(results, f"{name}.txt")
        passed = [line for line in said.split("\n") if line.startswith("[  PASSED  ]")]
        ended = read(results, f"{name}.code") == "0" and passed and "SKIPPED" not in said
        check(ended, f"{name}: {passed if ended else said[said.find('Failure'):][:1500]}")
    print(*[line for line in read(results, "exactness.txt").split("\n") if " killed" in line or "produced" in line], sep="\n")
    check(read(results, "online") == "0-3", f"CPUs online at the end: {read(results, 'online')}")


def check_soak(results):
    profile, _ = recording(results, "soak")
    if not profile:
        return
    lives = len(profile.threads) + sum(t["folded"] for t in profile.threads)
    check(profile.window["length_ns"] >= SOAK_SECONDS * 1e9 and lives > 20 * SOAK_SECONDS,
          f"{lives} threads in {profile.window['length_ns'] / 1e9:.0f} s, {len(profile.document['stacks'])} stacks")


def check_suspend(results):
    """Dwell counts CLOCK_MONOTONIC, which stands still: the sleep of the machine is in no sum. The wall clock goes on."""
    profile, truth = recording(results, "suspend")
    (booted, ran), (booted_after, ran_after) = (map(float, read(results, name).split()) for name in ("before", "after"))
    slept = booted_after - booted - (ran_after - ran) / 1e9
    check(read(results, "suspend.code") == "0" and slept > 3, f"the machine slept {slept:.2f} s {read(results, 'state.err')}")
    if not profile or not check(len(truth) == 1, "the program ended by itself"):
        return
    compare_waits(profile, truth[0], {"clock_nanosleep"})
    window, stretch = profile.window, truth[0]["end_ns"] - truth[0]["start_ns"]
    check(window["length_ns"] < stretch + 3e9, f"the window of {window['length_ns'] / 1e9:.2f} s holds the {stretch / 1e9:.2f} s of the program and not the sleep")
    moved = window["end_unix_ns"] - window["start_unix_ns"] - window["length_ns"]
    check(abs(moved / 1e9 - slept) < 0.5, f"between its ends the wall clock went {moved / 1e9:.2f} s further")


def boot_and_check(vmlinuz, archive, story, workdir):
    console, results = guest.boot(vmlinuz, archive, story, workdir, **BOOTS[story])
    print("\n".join(line for line in console.split("\n") if "guest:" in line or "BUG" in line or "Oops" in line))
    if check("guest: end" in console, "the guest ran to its end"):
        log = read(results, "dmesg")
        bad = [line for line in log.split("\n") if any(word in line for word in ("BUG:", "Oops", "WARNING: CPU", "general protection", "rcu_sched detected"))]
        check(log != "" and not bad, f"the kernel has nothing to complain of {bad[:2]}")
        if story == "recordings":
            check_recordings(results)
        elif story == "lockdown":
            check("[confidentiality]" in read(results, "lockdown"), f"the kernel is locked down: {read(results, 'lockdown')}")
            refused(results, "lockdown", "lockdown")
            check(read(results, "doctor.code") == "3" and "lockdown" in read(results, "doctor.txt").lower(), f"doctor: {read(results, 'doctor.txt')[:300]}")
        elif story == "paranoid":
            check_paranoid(results)
        elif story == "event_arrays":
            check_event_arrays(results)
        elif story == "soak":
            check_soak(results)
        elif story == "suspend":
            check_suspend(results)
        else:
            profile, truth = recording(results, "nap")
            if profile:
                compare_waits(profile, truth[0], {"clock_nanosleep"})
            check(read(results, "cpus").split() == ["0-3", "0-1"], f"CPUs possible and online: {read(results, 'cpus').split()}")
    else:
        print(console[-3000:])


def main():
    series, story, cache = sys.argv[1:4]
    if not shutil.which("qemu-system-x86_64"):
        skip("qemu-system-x86_64 is not installed")
    os.makedirs(cache, exist_ok=True)
    workdir = tempfile.mkdtemp(prefix=f"guest-{series}-{story}.", dir=cache)
    try:
        vmlinuz = guest.kernel(series, cache)
        setpriv = [p for p in [shutil.which("setpriv")] if p]
        archive = os.path.join(workdir, "initramfs.gz")
        binaries = [DWELL, *map(program, PROGRAMS), *setpriv]
        if story == "event_arrays":
            binaries = [os.path.join(os.environ["EVENT_ARRAYS"], name)
                        for name in ("kernel_event_array_root_test", "exactness_root_test", "generator.bpf.o")]
        size = guest.initramfs(archive, binaries, workdir)
    except guest.Unavailable as error:
        shutil.rmtree(workdir, ignore_errors=True)
        skip(str(error))
    print(f"kernel {os.path.basename(vmlinuz)}, an archive of {size / 1e6:.0f} MB", flush=True)
    quietest(lambda: boot_and_check(vmlinuz, archive, story, workdir), attempts=2)
    shutil.rmtree(workdir, ignore_errors=True)
    finish()


main()
