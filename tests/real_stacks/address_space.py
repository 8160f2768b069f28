"""Which file, and where in it, an address of a running process is: what Dwell's frames say, worked out independently
of it from /proc/PID/maps and the program headers of the mapped files."""
import os
import struct

PT_LOAD = 1
ELF_HEADER_BYTES = 64
SEGMENT_BYTES = 56


def load_segments(path):
    """(file offset, address, bytes in the file) of each PT_LOAD of a 64-bit ELF file; none if it is not one."""
    try:
        with open(path, "rb") as f:
            head = f.read(ELF_HEADER_BYTES)
            if len(head) < ELF_HEADER_BYTES or head[:5] != b"\x7fELF\x02":
                return []
            at, = struct.unpack_from("<Q", head, 32)
            size, count = struct.unpack_from("<HH", head, 54)
            f.seek(at)
            table = f.read(size * count)
    except OSError:
        return []
    segments = []
    for i in range(len(table) // SEGMENT_BYTES):
        kind, _, offset, address, _, file_bytes = struct.unpack_from("<IIQQQQ", table, i * size)
        if kind == PT_LOAD:
            segments.append((offset, address, file_bytes))
    return segments


class AddressSpace:
    """The executable mappings of a process as they are now; `segments` remembers files over many processes."""

    segments = {}

    def __init__(self, pid):
        self.mappings = []
        with open(f"/proc/{pid}/maps", encoding="utf-8", errors="surrogateescape") as f:
            for line in f:
                words = line.rstrip("\n").split(None, 5)
                if "x" not in words[1]:
                    continue
                start, end = (int(n, 16) for n in words[0].split("-"))
                path = words[5] if len(words) > 5 else ""
                self.mappings.append((start, end, int(words[2], 16), path))
                if path.startswith("/") and path not in self.segments:
                    self.segments[path] = load_segments(f"/proc/{pid}/root{path}")

    def place(self, ip):
        """(path, address in that file), or ("", ip) where the code is in no file."""
        for start, end, page_offset, path in self.mappings:
            if not start <= ip < end:
                continue
            if path == "[vdso]":
                return path, ip - start
            offset = ip - start + page_offset
            for file_offset, address, file_bytes in self.segments.get(path, []):
                if file_offset <= offset < file_offset + file_bytes:
                    return path, offset - file_offset + address
        return "", ip


def processes_below(pid):
    """The process and its descendants, parents first."""
    found = [pid]
    for parent in found:
        for task in threads_of(parent):
            try:
                with open(f"/proc/{parent}/task/{task}/children", encoding="utf-8") as f:
                    found += [int(child) for child in f.read().split()]
            except OSError:
                continue
    return [p for p in found if state_of(p) not in "ZX"]


def threads_of(pid):
    try:
        return sorted(int(tid) for tid in os.listdir(f"/proc/{pid}/task"))
    except OSError:
        return []


def state_of(pid):
    """The letter of the first thread's state; X if there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
            return f.read().rpartition(")")[2].split()[0]
    except OSError:
        return "X"
