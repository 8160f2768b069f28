#!/usr/bin/env python3
"""One number, two programs, one window: no stack has a function of one under the name of the other."""
import subprocess

from dwell_e2e import Gated, Recorder, check, finish, json_lines, program, run, skip, total

SCRIPT = f"""
echo 299 >/proc/sys/kernel/ns_last_pid || exit 9
{program('nap')} --us 5000 --waits 100
echo 299 >/proc/sys/kernel/ns_last_pid
{program('deep')} --ms 300
"""
inside = ["unshare", "--pid", "--fork", "--mount-proc", "sh", "-c", SCRIPT]
if run(["unshare", "--pid", "--fork", "--mount-proc", "sh", "-c", "echo 299 >/proc/sys/kernel/ns_last_pid"]).returncode != 0:
    skip("the next number of a PID namespace cannot be chosen here")
recorder = Recorder("-a").attached()
done = subprocess.run(inside, capture_output=True, text=True)
profile = recorder.profile()
truth = json_lines(done.stdout)
pids = {line["pid"] for line in truth}
check(len(pids) == 1, f"both programs had the number {pids} in their namespace")
for name, own, other, sum_ns in (("nap", "inner", "descend", truth[0]["sum_ns"]), ("deep", "descend", "inner", sum(x["sum_ns"] for x in truth[1:]))):
    entries = [i for i, p in enumerate(profile.processes) if p["name"] == name]
    rows = [r for r in profile.all_rows if profile.threads[r["thread"]]["process"] in entries and r["cause"] == "clock_nanosleep"]
    wrong = [r for r in rows if other in profile.functions(r)]
    check(rows and not wrong, f"{name}: {len(rows)} rows, none with a function of the other")
    mine = total([r for r in rows if own in profile.functions(r)])
    check(abs(mine - sum_ns) <= 0.03 * sum_ns, f"{name}: {mine / 1e6:.1f} ms under its own functions, truth {sum_ns / 1e6:.1f} ms")

# The same number really twice, in the initial namespace, where the kernel lets us choose it.
last = "/proc/sys/kernel/ns_last_pid"
try:
    with open(last, "w", encoding="utf-8") as f:
        f.write("29990")
    first = Gated("nap", "--us", "5000", "--waits", "60")
    recorder = Recorder("-a", name="same.dwell").attached()
    first.work()
    first.close()
    with open(last, "w", encoding="utf-8") as f:
        f.write(str(first.pid - 1))
    second = subprocess.Popen([program("mixed")], stdout=subprocess.PIPE, text=True)
    second.communicate()
    profile = recorder.profile()
    if first.pid != second.pid:
        print(f"another process took the number {first.pid}: not the same twice")
    else:
        names = {profile.processes[profile.threads[r["thread"]]["process"]]["name"]: set() for r in profile.rows(pid=first.pid)}
        for r in profile.rows(pid=first.pid, cause={"clock_nanosleep"}):
            names[profile.processes[profile.threads[r["thread"]]["process"]]["name"]] |= set(profile.functions(r))
        check({"nap", "mixed"} <= set(names) and "f2" not in names["nap"] and "inner" not in names["mixed"],
              f"pid {first.pid} twice: {[(n, sorted(f)[:6]) for n, f in names.items()]}")
except OSError as error:
    print(f"the next number cannot be chosen: {error}")
finish()
