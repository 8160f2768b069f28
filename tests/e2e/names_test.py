#!/usr/bin/env python3
"""Hostile names of threads, programs, functions and files come through every output as data, in every format."""
import base64
import gzip
import json
import os
import re

from dwell_e2e import DWELL, OUT, check, finish, json_lines, load, out, program, report, run
from truth import check_conservation

# Each overwrites a function name of 80 letters in the symbol table of a copy of the program.
FUNCTIONS = [b"semi;colon 17", b"<script>alert(1)</script><img src=x onerror=alert(2)>", b"</script></style>{{x}}${x}`x`<!--",
             b"quote' \" \\ back\\\\\" and \t tab", b"new\nline\r\x1b[31mred\x07\x9b1m\x7f", b"bytes \xff\xfe\xc0\x80 end \xe2\x80\xae rtl"]
THREADS = [b"a;b 1", b"<script>", b"\"'\\", b"\n\r\t\x1b[2J", b"\xff\xfe\xc3", b"=1+1;%s%n"]
with open(program("hostile"), "rb") as f:
    data = f.read()
for i, name in enumerate(FUNCTIONS):
    plain = b"name_%d_of_eighty_letters_for_the_test_to_overwrite_with_bytes_that_break_reports_" % i
    data = data.replace(plain, name + b"#" * (len(plain) - len(name)))
path = os.path.join(OUT, "host;ile <b>\n\x1b[1m'\"")
with open(path, "wb") as f:
    f.write(data)
os.chmod(path, 0o755)

done = run([DWELL.encode(), b"record", b"-o", out("n.dwell").encode(), b"--", path.encode(), *THREADS])
check(done.returncode == 0, f"recorded: exit {done.returncode} {done.stderr.strip()[-200:]}")
profile, truth = load(out("n.dwell")), json_lines(done.stdout)
naps = profile.rows(cause={"clock_nanosleep"})
count = sum(r["count"] for r in naps)
check(count == 60, f"all {count} naps of 60")
for name in FUNCTIONS:
    text = name.decode("utf-8", "replace")[:10]
    check(any(text[:4] in f for r in naps for f in profile.user_functions(r)), f"JSON: a function that begins {text!r}")
check_conservation(profile)
totals = profile.document["totals"]

table = report(out("n.dwell"), "--top", "50").stdout
check(not re.search(r"[\x00-\x08\x0b-\x1f\x7f\x80-\x9f]", table), "table: no control byte")
check("\u202e" not in table, "table: no direction override")

folded = report(out("n.dwell"), "--folded", "-").stdout
bad = [line for line in folded.split("\n") if line and not re.fullmatch(r"[^;]+(;[^;]+)* [0-9]+", line)]
check(folded and not bad, f"folded: every line is frames and a number {bad[:1]}")
check(not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", folded), "folded: no control byte")
check(sum(int(line.rsplit(" ", 1)[1]) for line in folded.split("\n") if line) == totals["off_cpu_ns"], "folded: the same total as JSON")

html = report(out("n.dwell"), "--html", "-").stdout
blobs = re.findall(r"<script[^>]*>", html)
check(html.count("</script>") == len(blobs), f"HTML: {len(blobs)} scripts, as many ends")
for word in ("alert(1)", "onerror=alert", "HYPERLINK", "<b>"):
    check(word not in html.replace("createElement", ""), f"HTML: the bytes {word!r} do not stand in the page")
embedded = [base64.b64decode(b) for b in re.findall(r"[A-Za-z0-9+/=]{200,}", html) if b.startswith("H4sI")]
documents = [json.loads(gzip.decompress(b)) for b in embedded]
check(any(d.get("totals") == totals for d in documents), "HTML: its data is the JSON document, with the same totals")

run([DWELL, "report", out("n.dwell"), "--pprof", out("n.pb.gz")])
with open(out("n.pb.gz"), "rb") as f:
    pprof = f.read()
pprof = gzip.decompress(pprof) if pprof[:2] == b"\x1f\x8b" else pprof
check(b"semi;colon" in pprof and b"clock_nanosleep" in pprof, f"pprof: names are in its {len(pprof)} bytes")
check(json.loads(report(out("n.dwell"), "--json", "-").stdout) == profile.document, "JSON: the same document each time")
finish()
