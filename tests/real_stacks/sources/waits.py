"""Waits of Python threads: locks, queues, sockets, children, event loops, and callbacks from C code into Python."""
import asyncio
import concurrent.futures
import functools
import multiprocessing
import queue
import re
import select
import socket
import sqlite3
import subprocess
import threading
import time


def sleep_here(*_):
    time.sleep(600)
    return 0


def descend(depth, last):
    return sorted([1], key=lambda _: descend(depth - 1, last)) if depth else last()


def query():
    database = sqlite3.connect(":memory:")
    database.create_function("sleep_here", 0, sleep_here)
    database.execute("SELECT sleep_here()").fetchall()


class Sleeper:
    def __lt__(self, other):
        return sleep_here()

    def __del__(self):
        sleep_here()


def pool():
    with concurrent.futures.ThreadPoolExecutor(2) as executor:
        list(executor.map(sleep_here, range(2)))


def child():
    with subprocess.Popen(["sleep", "600"]) as sleeper:
        sleeper.wait()


listener = socket.create_server(("127.0.0.1", 0))
lock = threading.Lock()
lock.acquire()
WAYS = [sleep_here, queue.Queue().get, lock.acquire, listener.accept, child, pool, query,
        threading.Event().wait, threading.Condition().__enter__, lambda: select.select([listener], [], []),
        lambda: asyncio.run(asyncio.sleep(600)), lambda: re.sub("a", sleep_here, "a"), lambda: min(Sleeper(), Sleeper()),
        lambda: functools.reduce(sleep_here, [1, 2]), lambda: [Sleeper()].clear(), lambda: descend(3, sleep_here),
        lambda: descend(8, sleep_here), lambda: descend(2, query), lambda: descend(4, listener.accept)]
multiprocessing.get_context("fork").Process(target=sleep_here, daemon=True).start()
for way in WAYS:
    threading.Thread(target=way, daemon=True).start()
sleep_here()
