// The order of the table of threads, and how far the kernel's own account agrees with ours.
import type {ThreadEntry, ProfileDocument} from './document.ts';
import type {Order} from './view.ts';

const kThreadColumns: Record<string, (thread: ThreadEntry) => number | string> = {
  'name': (t) => t.name,
  'tid': (t) => t.tid,
  'alive': (t) => t.times.alive_ns,
  'running': (t) => t.times.running_ns,
  'run-queue': (t) => t.times.run_queue_ns + t.times.censored_run_queue_ns,
  'blocked': (t) => t.times.blocked_ns + t.times.censored_blocked_ns,
  'intervals': (t) => t.times.intervals,
};

// Indexes of the threads in the wanted order; ties by index.
export function sortedThreads(document: ProfileDocument, order: Order): Int32Array {
  const {threads, processes} = document;
  const column = order.column === 'process'
    ? (t: ThreadEntry) => `${processes[t.process]!.name}\0${processes[t.process]!.pid}`
    : kThreadColumns[order.column] ?? kThreadColumns['alive']!;
  const keys = threads.map(column);
  const sign = order.down ? -1 : 1;
  return Int32Array.from(threads, (_, i) => i).sort((a, b) =>
    (keys[a]! < keys[b]! ? -sign : keys[a]! > keys[b]! ? sign : a - b));
}

export interface Agreement {
  verdict: 'none' | 'agrees' | 'differs';
  running_ns: number;   // ours minus the kernel's
  run_queue_ns: number;
}

// The kernel accounts at ticks and switches, we at switches: a difference up to 1 % of the time
// alive or one millisecond is agreement. Its books were read before the window and after it, so
// that they may hold as much more as lay outside.
const kTolerance = 0.01;
const kTolerance_ns = 1e6;

export function agreement(thread: ThreadEntry): Agreement {
  const {schedstat, times} = thread;
  if (schedstat === null) return {verdict: 'none', running_ns: 0, run_queue_ns: 0};
  const running_ns = times.running_ns - schedstat.on_cpu_ns;
  const run_queue_ns = times.run_queue_ns + times.censored_run_queue_ns - schedstat.run_queue_ns;
  const allowed = Math.max(kTolerance_ns, kTolerance * times.alive_ns);
  const outside_ns = Math.max(0, schedstat.stretch_ns - times.alive_ns);
  const agrees = [running_ns, run_queue_ns].every(ns => ns <= allowed && -ns <= allowed + outside_ns);
  return {verdict: agrees ? 'agrees' : 'differs', running_ns, run_queue_ns};
}
