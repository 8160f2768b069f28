#!/usr/bin/env python3
"""The first Ctrl-C or SIGTERM stops and writes a whole file within 2 s, a second one aborts; under load too."""
import os
import signal
import subprocess
import time

from dwell_e2e import OUT, Recorder, check, finish, load, program, report, run
from truth import check_conservation


def leftovers():
    return [name for name in os.listdir(OUT) if not name.endswith(".dwell") and name != "cache"]


load_makers = [subprocess.Popen([program("ping_pong"), "--seconds", "120"], stdout=subprocess.DEVNULL) for _ in range(2)]
for number in (signal.SIGINT, signal.SIGTERM):
    recorder = Recorder("-a", name=f"{number.name}.dwell").attached()
    time.sleep(2)
    seconds, code, said = recorder.stop(number)
    check(code == 0 and seconds < 2, f"{number.name} under load: exit {code} after {seconds:.2f} s {said.strip()[-200:] if code else ''}")
    profile = load(recorder.path)
    check(profile.window["length_ns"] > 0.9e9 and profile.all_rows, f"{number.name}: a whole file, window {profile.window['length_ns'] / 1e9:.2f} s")
    check_conservation(profile, f"{number.name}: ")
check(not leftovers(), f"nothing else lies in the folder {leftovers()}")

recorder = Recorder("-a", name="aborted.dwell").attached()
recorder.process.send_signal(signal.SIGINT)
time.sleep(0.002)
seconds, code, _ = recorder.stop()
whole = os.path.exists(recorder.path) and report(recorder.path).returncode == 0
check(seconds < 1 and (code != 0 or whole), f"a second Ctrl-C ends it at once: exit {code} after {seconds:.2f} s")
check(whole or not os.path.exists(recorder.path), "it leaves a whole file or none")

recorder = Recorder("-a", name="early.dwell")
time.sleep(0.05)
seconds, code, _ = recorder.stop()
whole = os.path.exists(recorder.path) and report(recorder.path).returncode == 0
check(seconds < 3 and (whole or not os.path.exists(recorder.path)), f"Ctrl-C while it starts: exit {code} after {seconds:.2f} s, file: {whole}")
for process in load_makers:
    process.kill()
    process.wait()

# The command of `record -- COMMAND` gets its own Ctrl-C from the terminal; SIGTERM to dwell ends the recording.
recorder = Recorder("--", "sleep", "30", name="long.dwell").attached()
children = run(["ps", "-o", "pid=", "--ppid", str(recorder.process.pid)]).stdout.split()
seconds, code, _ = recorder.stop(signal.SIGTERM)
check(seconds < 2.5 and os.path.exists(recorder.path), f"SIGTERM while the command runs: exit {code} after {seconds:.2f} s, file written")
for pid in children:
    alive = os.path.exists(f"/proc/{pid}") and "sleep" in open(f"/proc/{pid}/comm", encoding="utf-8").read()
    print(f"the command lives on: {alive}")
    if alive:
        os.kill(int(pid), signal.SIGTERM)
finish()
