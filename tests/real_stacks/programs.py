"""The programs whose stacks are compared, each brought to where its threads sleep in the ways of its trade.

A program is started in a folder of its own, talks to nobody but itself over loopback, and is ended by the pids of its
process tree. `needs`: {command: Debian package}."""
import dataclasses
import glob
import os
import pwd
import shutil
import socket
import subprocess
import sys
import time
import typing

SOURCES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "sources")
POSTGRES = sorted(glob.glob("/usr/lib/postgresql/*/bin"))[-1:] or ["/usr/lib/postgresql/bin"]
QUIET = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


@dataclasses.dataclass
class Program:
    name: str
    needs: dict
    start: typing.Callable  # (folder) -> the processes that it started, which stay
    settle_s: float = 1.5
    own_truth: str = ""  # of truth_stacks.WALKS, beside gdb and libdwfl; ends the program

    def missing(self):
        """The packages that this machine lacks."""
        return [package for command, package in self.needs.items() if shutil.which(command) is None]


def launch(command, **options):
    """A process whose standard input is a pipe that nobody writes to."""
    options.setdefault("stdin", subprocess.PIPE)
    return subprocess.Popen(command, **{**QUIET, **options})


def source(name):
    return os.path.join(SOURCES, name)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def hold_connections(port, count=3):
    """Clients that connect and say nothing, in a process of their own."""
    code = f"import socket, time\nheld = [socket.create_connection(('127.0.0.1', {port})) for _ in range({count})]\ntime.sleep(600)"
    return launch([sys.executable, "-c", code])


def wait_for_port(port):
    """A program that never listens is found out by what it lacks later."""
    for _ in range(200):
        with socket.socket() as s:
            if s.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)


def bash(folder):
    return [launch(["bash", source("waits.bash")], cwd=folder)]


def python(folder):
    return [launch([sys.executable, source("waits.py")], cwd=folder)]


def perl(folder):
    return [launch(["perl", source("waits.pl")], cwd=folder)]


def node(folder):
    os.mkfifo(os.path.join(folder, "fifo"))
    return [launch(["node", source("waits.js")], cwd=folder)]


def git(folder):
    repository = os.path.join(folder, "repository")
    quiet = {"cwd": folder, "check": True, **QUIET}
    subprocess.run(["git", "init", "-q", repository], **quiet)
    identity = ["-c", "user.name=nobody", "-c", "user.email=nobody@localhost"]
    subprocess.run(["git", *identity, "-C", repository, "commit", "-q", "--allow-empty", "-m", "first"], **quiet)
    started = [launch(["git", "-C", repository, *arguments]) for arguments in (
        ["cat-file", "--batch"], ["hash-object", "--stdin"], ["index-pack", "--stdin"], ["upload-pack", "."],
        ["fast-import"], ["check-attr", "--stdin", "-a"], ["pack-objects", "--stdout"])]
    editor = dict(os.environ, GIT_EDITOR="sleep 600;:")
    started.append(launch(["git", *identity, "-C", repository, "commit", "--allow-empty"], env=editor))
    # A clone whose other side answers nothing.
    started.append(launch(["git", "clone", "-q", "-u", "sleep 600;:", repository, os.path.join(folder, "clone")]))
    return started


def cc1(folder):
    """Compilers that wait for the rest of their source: on standard input, and deep within headers."""
    for i in range(8):
        with open(os.path.join(folder, f"level{i}.h"), "w", encoding="utf-8") as f:
            f.write(f'int f{i}(int x) {{ return x * {i}; }}\n#include "level{i + 1}.h"\n')
    os.mkfifo(os.path.join(folder, "level8.h"))
    with open(os.path.join(folder, "deep.c"), "w", encoding="utf-8") as f:
        f.write('#include "level0.h"\n')
    started = [launch(["gcc", *flags, "-S", "-x", "c", "-", "-o", "/dev/null"], cwd=folder) for flags in (["-O2"], ["-O0", "-g"])]
    started += [launch(["gcc", flag, "-c", "deep.c", "-o", "/dev/null"], cwd=folder) for flag in ("-O2", "-pipe", "-E")]
    return started


def postgres(folder):
    user = pwd.getpwnam("postgres")
    as_user = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": [], "cwd": folder, "env": {"PATH": os.environ["PATH"]}}
    os.chown(folder, user.pw_uid, user.pw_gid)
    data, bin_folder, port = os.path.join(folder, "data"), POSTGRES[0], str(free_port())
    subprocess.run([f"{bin_folder}/initdb", "-D", data, "-N", "-A", "trust"], check=True, **QUIET, **as_user)
    server = launch([f"{bin_folder}/postgres", "-D", data, "-p", port, "-k", folder, "-h", ""], **as_user)
    psql = [f"{bin_folder}/psql", "-q", "-h", folder, "-p", port, "-d", "postgres"]
    for _ in range(100):
        if subprocess.run([f"{bin_folder}/pg_isready", "-q", "-h", folder, "-p", port], **as_user).returncode == 0:
            break
    with open(source("waits.sql"), encoding="utf-8") as f:
        subprocess.run(psql, input=f.read(), text=True, check=True, **QUIET, **as_user)
    waits = ["BEGIN; SELECT * FROM work WHERE id = 1 FOR UPDATE; SELECT pg_sleep(600)",
             "SELECT pg_sleep(600)", "SELECT outer_wait(5)", "SELECT outer_wait(2)"]
    waits += ["UPDATE work SET value = 2 WHERE id = 1", "LOCK TABLE work", "SELECT pg_advisory_lock(1), pg_advisory_lock(2), pg_sleep(600)"]
    started = [server] + [launch([*psql, "-c", wait], **as_user) for wait in waits]
    return started + [launch(psql, **as_user) for _ in range(8)]


def redis(folder):
    port = free_port()
    server = launch(["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--dir", folder, "--io-threads", "4",
                     "--io-threads-do-reads", "yes", "--appendonly", "yes"], cwd=folder)
    wait_for_port(port)
    client = ["redis-cli", "-p", str(port)]
    subprocess.run(["redis-benchmark", "-p", str(port), "-q", "-n", "2000", "-t", "set,get,lpush"], check=True, **QUIET)
    return [server, *(launch([*client, *words]) for words in (["BLPOP", "empty", "0"], ["SUBSCRIBE", "news"], ["MONITOR"]))]


def nginx(folder):
    port = free_port()
    configuration = os.path.join(folder, "nginx.conf")
    with open(source("nginx.conf"), encoding="utf-8") as f, open(configuration, "w", encoding="utf-8") as to:
        to.write(f.read().replace("FOLDER", folder).replace("PORT", str(port)))
    server = launch(["nginx", "-p", folder, "-c", configuration])
    wait_for_port(port)
    return [server, hold_connections(port)]


def java(*flags):
    def start(folder):
        if not os.path.exists(os.path.join(folder, "Waits.class")):
            subprocess.run(["javac", "-d", folder, source("Waits.java")], check=True, **QUIET)
        return [launch(["java", *flags, "-Xmx128m", "-cp", folder, "Waits"], cwd=folder)]
    return start


def chromium(folder):
    page = os.path.join(folder, "page.html")
    with open(page, "w", encoding="utf-8") as f:
        f.write("<h1>waits</h1><script>new Worker(URL.createObjectURL(new Blob(['onmessage = () => 0'])));</script>")
    return [launch(["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0",
                    f"--user-data-dir={folder}/profile", "file://" + page], cwd=folder)]


def launch_go(command, folder):
    with open(os.path.join(folder, "stderr"), "w", encoding="utf-8") as f:
        return launch(command, stderr=f, env=dict(os.environ, GOTRACEBACK="crash"))


def go_server(folder):
    port = free_port()
    server = launch_go(["prometheus-node-exporter", f"--web.listen-address=127.0.0.1:{port}"], folder)
    wait_for_port(port)
    return [server, hold_connections(port)]


def go_built(folder):
    shutil.copy(source("waits.go"), folder)
    binary = os.path.join(folder, "waits")
    cache = dict(os.environ, GOCACHE=os.path.join(folder, "cache"), GO111MODULE="off", CGO_ENABLED="0")
    subprocess.run(["/usr/bin/go", "build", "-o", binary, "waits.go"], cwd=folder, env=cache, check=True, **QUIET)
    return [launch_go([binary], folder)]


def rust(folder):
    for i in range(4):
        os.mkfifo(os.path.join(folder, f"fifo{i}"))
        with open(os.path.join(folder, f"file{i}"), "w", encoding="utf-8") as f:
            f.write("text\n")
    return [launch(["rg", "--threads", "4", "needle", *(f"fifo{i}" for i in range(4))], cwd=folder),
            launch(["rg", "needle", "-"], cwd=folder), launch(["batcat", "--paging", "never", "-"], cwd=folder),
            launch(["fdfind", "--threads", "4", "file", ".", "-x", "sleep", "600"], cwd=folder)]


PROGRAMS = [
    Program("bash", {"bash": "bash"}, bash),
    Program("python", {"python3": "python3"}, python),
    Program("perl", {"perl": "perl"}, perl),
    Program("git", {"git": "git"}, git),
    Program("cc1", {"gcc": "gcc"}, cc1),
    Program("node", {"node": "nodejs"}, node),
    Program("postgres", {f"{POSTGRES[0]}/initdb": "postgresql"}, postgres, settle_s=3),
    Program("redis", {"redis-server": "redis-server", "redis-benchmark": "redis-tools"}, redis),
    Program("nginx", {"nginx": "nginx-light"}, nginx),
    Program("java", {"java": "default-jre-headless", "javac": "default-jdk-headless"}, java(), settle_s=4),
    Program("java-fp", {"java": "default-jre-headless", "javac": "default-jdk-headless"},
            java("-XX:+PreserveFramePointer"), settle_s=4),
    Program("chromium", {"chromium": "chromium"}, chromium, settle_s=6),
    Program("go", {"prometheus-node-exporter": "prometheus-node-exporter"}, go_server, own_truth="go"),
    Program("go-built", {"/usr/bin/go": "golang-go"}, go_built, own_truth="go"),
    Program("rust", {"rg": "ripgrep", "fdfind": "fd-find", "batcat": "bat"}, rust),
]
