// Waits of Node: the event loop, its thread pool, workers, and compiled code that waits deep within itself.
const { Worker, isMainThread, workerData } = require("worker_threads");
const fs = require("fs");
const net = require("net");

const cell = new Int32Array(new SharedArrayBuffer(4));
function waitHere() {
  return Atomics.wait(cell, 0, 0, 600000);
}
function descend(depth, last) {
  return depth > 0 ? descend(depth - 1, last) + 1 : last();
}
function warmUp() {
  for (let i = 0; i < 20000; ++i) descend(10, () => 0);
}

if (isMainThread) {
  for (const way of ["wait", "compiled", "callback", "loop"]) new Worker(__filename, { workerData: way });
  for (let i = 0; i < 2; ++i) fs.open("fifo", "r", () => {});
  net.createServer().listen(0, "127.0.0.1");
} else if (workerData === "wait") {
  waitHere();
} else if (workerData === "compiled") {
  warmUp();
  descend(15, waitHere);
} else if (workerData === "callback") {
  [2, 1].sort(() => "a".replace(/a/, () => JSON.parse("[1]", () => waitHere())));
} else {
  setInterval(() => {}, 600000);
}
