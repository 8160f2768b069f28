#!/usr/bin/env python3
"""Inside a PID namespace -p never means the outer process of that number: the inner one is recorded, or it is refused."""
import json
import os

from dwell_e2e import DWELL, check, finish, out, program, run, skip

done = run(["unshare", "--pid", "--fork", "--mount-proc", "true"])
if done.returncode != 0:
    skip(f"no PID namespace can be made here: {done.stderr.strip()}")

SCRIPT = f"""
{program('nap')} --us 10000 --waits 150 --threads 4 >{out('inner.truth')} &
inner=$!
echo inner $inner
sleep 0.1
{DWELL} record -p $inner -d 1s -o {out('inner.dwell')}
echo exit $?
wait $inner
"""
done = run(["unshare", "--pid", "--fork", "--mount-proc", "sh", "-c", SCRIPT], timeout=40)
words = dict(line.split()[:2] for line in done.stdout.split("\n") if line.startswith(("inner", "exit")))
inner, code = int(words.get("inner", 0)), int(words.get("exit", -1))
check(inner > 0 and code >= 0, f"the script ran: {done.stdout!r} {done.stderr.strip()[-200:]}")
if code == 0:
    document = json.loads(run([DWELL, "report", out("inner.dwell"), "--json", "-"]).stdout)
    names = {p["name"] for p in document["processes"]}
    check(names == {"nap"}, f"the inner process was recorded: {names}")
    blocked = [t["times"]["blocked_ns"] + t["times"]["censored_blocked_ns"] for t in document["threads"]
               if t["name"].startswith("path_")]
    length = document["window"]["length_ns"]
    check(len(blocked) == 4 and all(ns > 0.95 * length for ns in blocked), f"its threads napped all the time: {blocked} of {length}")
else:
    check("namespace" in done.stderr.lower(), f"refused with exit {code}, and the message says why: {done.stderr.strip()[:400]}")
    check(not os.path.exists(out("inner.dwell")), "no file was written")
finish()
