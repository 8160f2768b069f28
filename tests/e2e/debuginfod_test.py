#!/usr/bin/env python3
"""`report --debuginfod` gets names and lines of a stripped program from a server, and only then is a server asked: not for
DEBUGINFOD_URLS, not by --lines. Without an answer, or with that of another build, the report is as it was, and says why."""
import http.server
import json
import os
import re
import shutil
import socket
import subprocess
import threading
import time

from dwell_e2e import DWELL, check, finish, out, run, skip

SOURCE = r"""#include <stdio.h>
#include <time.h>
static __attribute__((noinline)) int hidden_nap(int n) {
  struct timespec t = {0, 5000000};
  nanosleep(&t, NULL);
  return n + 1;
}
int main(void) {
  int n = 0;
  while (n < 20) n = hidden_nap(n);
  return 0;
}
"""
LINE = {name: number for number, line in enumerate(SOURCE.split("\n"), 1) for name, text in
        (("hidden_nap", "nanosleep(&t"), ("main", "n = hidden_nap(n)")) if text in line}
for tool in ("gcc", "objcopy", "strip"):
    if not shutil.which(tool):
        skip(f"{tool} is not installed")
if subprocess.run(["sh", "-c", "ldconfig -p | grep -q libdebuginfod.so.1"], check=False).returncode != 0:
    skip("libdebuginfod is not installed (package libdebuginfod1)")


class Listener:
    """A server that keeps a list of who asked it for what, and answers with `content` or not at all."""

    def __init__(self, content=None):
        asked = self.asked = []

        class Answer(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                asked.append(self.path)
                self.send_response(404 if content is None else 200)
                self.send_header("Content-Length", str(len(content or b"")))
                self.end_headers()
                self.wfile.write(content or b"")

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


class Debuginfod:
    """Debian's server over a folder, with a database of its own."""

    def __init__(self, folder):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.log_path = out("server.log")
        with open(self.log_path, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(["debuginfod", "-v", "-F", "-t", "0", "-g", "0", "-d", out("server.sqlite"), "-p", str(port), folder],
                                            stdout=log, stderr=log, env={**os.environ, "HOME": out(""), "DEBUGINFOD_URLS": ""})
        self.url = f"http://127.0.0.1:{port}"

    def wait_until_it_has(self, build_id):
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            if run(["debuginfod-find", "debuginfo", build_id], env=environment(self.url, "wait")).returncode == 0:
                return True
            shutil.rmtree(out("wait"), ignore_errors=True)
            time.sleep(0.2)
        return False

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as log:
            return log.read()

    def asked(self, build_id):
        return sum(1 for line in self.log().split("\n") if "GET" in line and build_id in line)

    def end(self):
        self.process.terminate()
        self.process.wait()


def environment(url, cache="cache"):
    kept = {k: v for k, v in os.environ.items() if not k.startswith("DEBUGINFOD_")}
    return {**kept, "DEBUGINFOD_CACHE_PATH": out(cache), **({"DEBUGINFOD_URLS": url} if url else {})}


class Report:
    def __init__(self, url, *options, cache="cache"):
        done = run([DWELL, "report", out("nap.dwell"), "--json", "-", "--debug-dir", out("nowhere"), *options], env=environment(url, cache))
        self.exit, self.said = done.returncode, done.stderr
        self.document = json.loads(done.stdout) if done.stdout else None

    def own_frames(self):
        """(function, line, how) of the program's frames, leaf first, for each stack of the naps."""
        frames, modules = self.document["frames"], self.document["modules"]
        return [[(f["function"], f.get("line", 0), f["how"]) for f in (frames[i] for i in self.document["stacks"][row["stack"]]["frames"])
                 if modules[f["module"]]["path"] == out("nap")][:2] for row in self.document["rows"] if row["cause"] == "clock_nanosleep"]

    def expect(self, label, *frames):
        own = self.own_frames()
        check(own and all(stack == list(frames) for stack in own), f"{label}: {own}")

    def unresolved(self):
        return [u for u in self.document["unresolved"] if self.document["modules"][u["module"]]["path"] == out("nap")]

    def warning(self, text):
        return any(text in w for w in self.document["warnings"])


def build():
    with open(out("nap.c"), "w", encoding="utf-8") as f:
        f.write(SOURCE)
    os.makedirs(out("files"))
    run(["gcc", "-g", "-O2", "-Wl,--build-id", "-o", out("nap"), out("nap.c")])
    run(["objcopy", "--only-keep-debug", out("nap"), out("files/nap.debug")])
    run(["strip", out("nap")])
    done = run([DWELL, "record", "-o", out("nap.dwell"), "--", out("nap")])
    check(done.returncode == 0, f"recorded: exit {done.returncode} {done.stderr.strip()[-200:]}")
    return re.search(r"Build ID: ([0-9a-f]+)", run(["readelf", "-n", out("nap")]).stdout).group(1)


NAMELESS = [("", 0, "none"), ("", 0, "none")]
NAMED = [("hidden_nap", 0, "debug-file"), ("main", 0, "debug-file")]
WITH_LINES = [("hidden_nap", LINE["hidden_nap"], "debug-file"), ("main", LINE["main"], "debug-file")]


def nobody_is_asked():
    listener = Listener()
    for options in ([], ["--lines"], ["--lines", "--inline"], ["--table"]):
        if "--table" in options:
            run([DWELL, "report", out("nap.dwell")], env=environment(listener.url))
            continue
        report = Report(listener.url, *options)
        report.expect(f"{options} with DEBUGINFOD_URLS", *NAMELESS)
    run([DWELL, "record", "-q", "-o", out("again.dwell"), "--", out("nap")], env=environment(listener.url))
    check(listener.asked == [], f"nobody came to the server that DEBUGINFOD_URLS names: {listener.asked}")


def no_good_answer(build_id):
    listener = Listener()
    report = Report(listener.url, "--debuginfod", "--lines", cache="none")
    report.expect("a server that has nothing", *NAMELESS)
    check(any(f"/buildid/{build_id}/debuginfo" in path for path in listener.asked), f"it was asked for the program: {listener.asked[:2]}")
    check(report.exit == 0 and report.warning("the servers do not have it"), f"said in the report: {report.document['warnings'][-1:]}")

    with open("/proc/self/exe", "rb") as other:
        liar = Listener(other.read())
    report = Report(liar.url, "--debuginfod", cache="lies")
    report.expect("a server that sends another program", *NAMELESS)
    check(report.exit == 0 and report.warning("is of another build"), f"said in the report: {report.document['warnings'][-1:]}")
    check(f"/buildid/{build_id}/debuginfo" in liar.asked, f"it was asked for the program: {liar.asked[:2]}")

    started = time.monotonic()
    report = Report("http://127.0.0.1:9", "--debuginfod", "--lines", cache="dead")
    check(report.exit == 0 and time.monotonic() - started < 45, f"a dead server: {time.monotonic() - started:.1f} s")
    check(report.warning("Connection refused"), f"said in the report: {report.document['warnings'][-1:]}")

    report = Report("", "--debuginfod")
    check(report.exit == 2 and "DEBUGINFOD_URLS" in report.said, f"without a server: exit {report.exit}, {report.said.strip()}")


def a_real_server(build_id):
    if not shutil.which("debuginfod") or not shutil.which("debuginfod-find"):
        print("not asked for real: the package debuginfod is not installed")
        return
    server = Debuginfod(out("files"))
    try:
        if not check(server.wait_until_it_has(build_id), "the server has found the debug file"):
            print(server.log()[-2000:])
            return
        before = server.asked(build_id)
        report = Report(server.url, "--lines")
        report.expect("--lines alone", *NAMELESS)
        check(server.asked(build_id) == before, "and the server was not asked")

        report = Report(server.url, "--debuginfod")
        report.expect("--debuginfod", *NAMED)
        check(server.asked(build_id) == before + 1, f"the server was asked once: {server.asked(build_id) - before}")
        check("asking for the debug file of " + out("nap") in report.said, f"and it is said: {report.said.strip()}")
        check(sum(u["frames"] for u in report.unresolved()) < sum(u["frames"] for u in Report("").unresolved()), "fewer frames lack names")

        report = Report(server.url, "--debuginfod", "--lines")
        report.expect("--debuginfod --lines", *WITH_LINES)
        check(server.asked(build_id) == before + 1, "from the cache now")
        table = run([DWELL, "report", out("nap.dwell"), "--debuginfod", "--lines"], env=environment(server.url)).stdout
        check(f"hidden_nap (nap.c:{LINE['hidden_nap']})" in table, "and in the table")
    finally:
        server.end()


build_id = build()
nobody_is_asked()
no_good_answer(build_id)
a_real_server(build_id)
finish()
