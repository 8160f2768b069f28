#!/usr/bin/env python3
"""`dwell doctor` says what this machine allows, the same for people and as JSON."""
import json
import platform

from dwell_e2e import DWELL, check, finish, run

text, machine = run([DWELL, "doctor"], timeout=20), run([DWELL, "doctor", "--json"], timeout=20)
check(text.returncode == 0 and machine.returncode == 0, f"exit {text.returncode} and {machine.returncode}")
for word in ("BTF", "capabilities", "lockdown", "kernel names", "perf_event_paranoid", "locked memory", "tracefs", "namespace"):
    check(word.lower() in text.stdout.lower(), f"it speaks of {word}")
check(platform.release() in text.stdout + machine.stdout, f"it names the kernel {platform.release()}")
document = json.loads(machine.stdout)
check(isinstance(document, (dict, list)) and document, f"JSON: {str(document)[:200]}")
print(text.stdout)
finish()
