#!/usr/bin/env python3
"""Each thread's wall time is the window, whatever it does and however loaded the machine is: nothing is assumed or doubled."""
import subprocess
import sys
import time

from dwell_e2e import Recorder, check, finish, load, program
from truth import check_conservation

SECONDS = 4
SLEEP, SPIN = "import time; time.sleep(60)", "while True: pass"
HALF = ("import time\nwhile True:\n  end = time.monotonic() + .01\n  while time.monotonic() < end: pass\n  time.sleep(.01)")


def off_cpu(times):
    return times["blocked_ns"] + times["censored_blocked_ns"]


def runnable(times):
    return times["running_ns"] + times["run_queue_ns"] + times["censored_run_queue_ns"]


for label, spinners in (("idle", 0), ("eight more spinners", 8)):
    kinds = {"sleeper": SLEEP, "spinner": SPIN, "half": HALF} | {f"load {i}": SPIN for i in range(spinners)}
    processes = {kind: subprocess.Popen([sys.executable, "-S", "-c", code]) for kind, code in kinds.items()}
    naps = subprocess.Popen([program("nap"), "--us", "5000", "--threads", "4", "--forever"], stdout=subprocess.DEVNULL)
    time.sleep(1)
    pids = [p.pid for p in processes.values()] + [naps.pid]
    recorder = Recorder("-p", ",".join(map(str, pids)), "-d", f"{SECONDS}s", name=f"{spinners}.dwell")
    _, code, said = recorder.wait()
    for process in [*processes.values(), naps]:
        process.kill()
        process.wait()
    check(code == 0, f"{label}: exit {code} {said.strip()[-200:] if code else ''}")
    profile = load(recorder.path)
    window = profile.window["length_ns"]
    check_conservation(profile, f"{label}: ")
    wrong = [t["name"] for t in profile.threads if abs(t["times"]["alive_ns"] - window) > 1000]
    check(len(profile.threads) == len(processes) + 5 and not wrong,
          f"{label}: {len(profile.threads)} threads, each of exactly the window's {window / 1e9:.3f} s {wrong or ''}")
    sleeper, spinner, half = (profile.times(pid=processes[kind].pid) for kind in ("sleeper", "spinner", "half"))
    check(off_cpu(sleeper) >= 0.99 * window, f"{label}: the sleeper slept {100 * off_cpu(sleeper) / window:.2f} % of it")
    check(runnable(spinner) + spinner["lost_ns"] >= 0.95 * window, f"{label}: the spinner ran or wanted to {100 * runnable(spinner) / window:.2f} %")
    check(0.1 * window < off_cpu(half) < 0.6 * window, f"{label}: the half sleeper slept {100 * off_cpu(half) / window:.1f} %")
finish()
