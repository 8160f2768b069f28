#!/usr/bin/env python3
"""Code whose only unwind data is .debug_frame has whole stacks: plain, compressed in each way, or stripped into a debug file that
its build id or its debug link leads to. Without that file, and with one of another build, the stack is cut and says so. The first nap is long: it is walked again when
the tables of a new process come into force."""
import os
import re
import shutil

from dwell_e2e import check, finish, out, record_command, run, skip

SOURCE = r"""#include <stdio.h>
#include <time.h>
#define FRAME __attribute__((noinline))
FRAME int rest(int n) {
  volatile char room[40] = {0};
  struct timespec t = {0, n < 2 ? 200000000 : 2000000};
  clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
  return n + room[n];
}
FRAME int middle(int n) {
  volatile char room[200] = {0};
  return rest(n) + room[n + 1] + BUILD;
}
FRAME int outer(int n) {
  volatile char room[72] = {0};
  return middle(n + 1) + room[n + 2];
}
int main(void) {
  for (int i = 0; i < 10; ++i) outer(i);
  printf("{\"naps\": 10}\n");
  return 0;
}
"""
CHAIN = ["rest", "middle", "outer", "main"]
SOURCE += "".join(f"int more_{i}(int n) {{ volatile char room[{i * 8 + 9}] = {{0}}; return rest(n) + room[n]; }}\n" for i in range(40))
for tool in ("gcc", "objcopy", "strip"):
    if not shutil.which(tool):
        skip(f"{tool} is not installed")
with open(out("frames.c"), "w", encoding="utf-8") as f:
    f.write(SOURCE)


def build(name, build=1, *options):
    done = run(["gcc", "-O2", "-g", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables", "-fomit-frame-pointer", "-Wl,--build-id",
                f"-DBUILD={build}", *options, "-o", out(name), out("frames.c")])
    check(done.returncode == 0, f"gcc for {name}: {done.stderr.strip()[-300:]}")
    return out(name)


def check_compressed(path, label):
    sections = run(["readelf", "-SW", path]).stdout
    check(re.search(r" \.zdebug_frame | \.debug_frame .* C +\d+ +\d+ +\d+$", sections, re.M), f"{label}: its .debug_frame is compressed")


def naps(path, label):
    """The profile, the stacks of the naps, and whether there are as many naps as the program says."""
    profile, truth, _ = record_command([path], name=label + ".dwell")
    rows = profile.rows(cause={"clock_nanosleep"})
    counted = sum(r["count"] for r in rows)
    check(counted == truth[0]["naps"], f"{label}: {counted} naps of {truth[0]['naps']}")
    return profile, rows


def own_frames(profile, row, path):
    modules = profile.document["modules"]
    return [f["function"] for f in profile.frames(row) if modules[f["module"]]["path"] == path]


def expect_whole(path, label):
    profile, rows = naps(path, label)
    for row in rows:
        own, stack = own_frames(profile, row, path), profile.stack(row)
        check(own == [*CHAIN, "_start"], f"{label}: {own}")
        check(stack["walk_end"] == "root" and not stack["by_pointer"], f"{label}: up to the root, all by unwind data ({stack['walk_end']})")


def expect_cut(path, label):
    profile, rows = naps(path, label)
    own = [own_frames(profile, row, path) for row in rows]
    check(rows and all(len(frames) < len(CHAIN) for frames in own), f"{label}: {own}, {[profile.stack(r)['walk_end'] for r in rows]}")


def build_id_of(path):
    return re.search(r"Build ID: ([0-9a-f]+)", run(["readelf", "-n", path]).stdout).group(1)


def compressed():
    expect_whole(build("plain"), "not compressed")
    for way in ("zlib", "zlib-gnu"):
        path = build(f"packed-{way}", 1, f"-gz={way}")
        check_compressed(path, way)
        expect_whole(path, f"-gz={way}")
    path = out("packed-zstd")
    if run(["objcopy", "--compress-debug-sections=zstd", out("plain"), path]).returncode == 0:
        check_compressed(path, "zstd")
        expect_whole(path, "zstd")
    else:
        print("this objcopy cannot compress with zstd")


def separate():
    whole = build("whole", 2)
    build_id = build_id_of(whole)
    path = out("program")
    run(["strip", "-o", path, whole])
    expect_cut(path, "stripped")
    debug, kept = out("program.debug"), out("kept.debug")
    run(["objcopy", "--only-keep-debug", whole, debug])
    run(["objcopy", f"--add-gnu-debuglink={debug}", path])
    os.rename(debug, kept)
    # Rows of another build would lead astray.
    os.makedirs(out(".debug"))
    run(["objcopy", "--only-keep-debug", build("other", 3), out(".debug/program.debug")])
    expect_cut(path, "a link to the file of another build")
    shutil.copy(kept, out(".debug/program.debug"))
    expect_whole(path, "debug link")
    os.unlink(out(".debug/program.debug"))

    store = f"/usr/lib/debug/.build-id/{build_id[:2]}"
    if os.geteuid() != 0:
        print("only root may put a debug file below /usr/lib/debug")
        return
    made = [folder for folder in (store, os.path.dirname(store)) if not os.path.isdir(folder)]
    os.makedirs(store, exist_ok=True)
    by_id = f"{store}/{build_id[2:]}.debug"
    try:
        run(["objcopy", "--compress-debug-sections=zlib", kept, by_id])
        check_compressed(by_id, "debug file")
        expect_whole(path, "build id, and compressed")
    finally:
        os.path.exists(by_id) and os.unlink(by_id)
        for folder in made:
            os.rmdir(folder)


compressed()
separate()
finish()
