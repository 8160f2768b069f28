"""Debian kernels in qemu by software emulation: get a kernel, build an initramfs of this machine's files, boot, collect.

Never KVM: the reference machine has none, and a test must not depend on it. The guest has no disk and no network; it
gets its files in the initramfs and hands its results back through a second serial port, as a tar archive.
"""
import glob
import gzip
import os
import re
import shutil
import subprocess
import tarfile

HERE = os.path.dirname(os.path.abspath(__file__))
META = {"6.1": "linux-image-cloud-amd64", "6.12": "linux-image-6.12-cloud-amd64"}


class Unavailable(Exception):
    """This machine cannot run the guest; the text says why."""


def apt(*command, cwd):
    return subprocess.run(["apt-get", "-qq", "-o", "APT::Sandbox::User=root", "-o", "Acquire::Retries=3", *command],
                          cwd=cwd, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=300)


def image_package(series):
    """The newest image of the series that apt knows, by the metapackage's dependency: "linux-image-6.1.0-…-cloud-amd64"."""
    shown = subprocess.run(["apt-cache", "show", META[series]], capture_output=True, text=True).stdout
    names = re.findall(rf"linux-image-{re.escape(series)}\.\S*-cloud-amd64", shown)
    return names[0] if names else None


def kernel(series, cache):
    """Path of the series' vmlinuz, downloaded and unpacked into `cache` once. Nothing is installed."""
    folder = os.path.join(cache, f"linux-{series}")
    found = glob.glob(f"{folder}/boot/vmlinuz-*")
    if found:
        return found[0]
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    package = image_package(series)
    if not package:
        apt("update", cwd=folder)
        package = image_package(series)
    if not package:
        raise Unavailable(f"apt knows no {META[series]}")
    done = apt("download", package, cwd=folder)
    if done.returncode != 0:
        apt("update", cwd=folder)
        package = image_package(series)
        done = apt("download", package, cwd=folder)
    archives = glob.glob(f"{folder}/*.deb")
    if done.returncode != 0 or not archives:
        raise Unavailable(f"apt-get download {package} failed: {done.stderr.strip()[-300:]}")
    unpack = subprocess.run(f"dpkg-deb --fsys-tarfile {archives[0]} | tar -x -C {folder} ./boot", shell=True)
    os.unlink(archives[0])
    found = glob.glob(f"{folder}/boot/vmlinuz-*")
    if unpack.returncode != 0 or not found:
        raise Unavailable(f"{package} has no kernel image")
    return found[0]


def libraries(path):
    """Absolute paths of the shared libraries, and the loader, that a binary needs."""
    listed = subprocess.run(["ldd", path], capture_output=True, text=True).stdout
    return {word for line in listed.split("\n") for word in line.split() if word.startswith("/")}


def initramfs(target, binaries, workdir):
    """A gzipped cpio archive: busybox, the binaries under /usr/bin with their libraries, init and the stories."""
    tree = os.path.join(workdir, "tree")
    shutil.rmtree(tree, ignore_errors=True)
    for folder in ("bin", "usr/bin", "dev", "proc", "sys", "tmp", "stories", "mnt"):
        os.makedirs(os.path.join(tree, folder))
    busybox = shutil.which("busybox")
    if not busybox or libraries(busybox):
        raise Unavailable("busybox-static is not installed")
    shutil.copy(busybox, f"{tree}/bin/busybox")
    shutil.copy(f"{HERE}/init", f"{tree}/init")
    for story in glob.glob(f"{HERE}/stories/*.sh"):
        shutil.copy(story, f"{tree}/stories")
    for binary in binaries:
        destination = f"{tree}/usr/bin/{os.path.basename(binary)}"
        # Without debugging sections the archive unpacks ten times as fast; the symbol table stays.
        if subprocess.run(["strip", "--strip-debug", "-o", destination, binary], capture_output=True).returncode != 0:
            shutil.copy(binary, destination)
        for library in libraries(binary):
            if not os.path.exists(tree + library):
                os.makedirs(os.path.dirname(tree + library), exist_ok=True)
                shutil.copy(library, tree + library)
    archive = subprocess.run("find . | LC_ALL=C sort | cpio --quiet -o -H newc", shell=True, cwd=tree, capture_output=True, check=True).stdout
    with gzip.open(target, "wb", compresslevel=1) as f:
        f.write(archive)
    return len(archive)


def boot(vmlinuz, archive, story, workdir, smp="4", append="", timeout=560):
    """Boots and runs the story. Returns (console text, folder with what the guest left in /out)."""
    raw, results = os.path.join(workdir, f"{story}.tar.gz"), os.path.join(workdir, story)
    shutil.rmtree(results, ignore_errors=True)
    os.makedirs(results)
    command = ["qemu-system-x86_64", "-accel", "tcg,thread=single", "-cpu", "max", "-smp", smp, "-m", "2048", "-nodefaults", "-no-reboot",
               "-display", "none", "-serial", "stdio", "-serial", f"file:{raw}", "-kernel", vmlinuz, "-initrd", archive,
               "-append", f"console=ttyS0 rdinit=/init quiet panic=-1 story={story} {append}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL, timeout=timeout)
        console = done.stdout + done.stderr
    except subprocess.TimeoutExpired as expired:
        console = (expired.stdout or b"").decode(errors="replace") + f"\nguest: did not end within {timeout} s"
    try:
        with tarfile.open(raw) as tar:
            tar.extractall(results)
    except (OSError, tarfile.TarError, EOFError) as error:
        console += f"\nguest: its results cannot be read: {error}"
    return console, results
