// Builds profile documents (the JSON of `dwell report --json`) whose books balance: thread times
// are summed up from the rows, so that a test may compare any view of the page with the document.

const kTimeFields = [
  'alive_ns', 'running_ns', 'run_queue_ns', 'blocked_ns', 'censored_run_queue_ns',
  'censored_blocked_ns', 'lost_ns', 'filtered_ns', 'overflow_ns', 'intervals',
  'blocked_intervals', 'filtered_intervals', 'overflow_intervals',
];

const kRunQueueClasses =
  new Set(['preempted', 'preempted-kernel', 'yielded', 'signal', 'new', 'runnable']);

function zeroTimes() {
  return Object.fromEntries(kTimeFields.map((field) => [field, 0]));
}

// Numbers from 0 to 1, the same at every run.
export function randomNumbers(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

// `count` durations with the given mean, spread over neighbouring powers of two.
function histogramOf(count, mean_ns) {
  const middle = Math.min(30, Math.max(1, Math.floor(Math.log2(Math.max(mean_ns, 64))) - 5));
  if (count === 1) return [[2 ** (middle + 5), 1]];
  const shares = [0.08, 0.22, 0.4, 0.2, 0.08, 0.02];
  const buckets = [];
  let left = count;
  shares.forEach((share, i) => {
    const bucket = middle - 3 + i;
    if (bucket < 0 || bucket > 31) return;
    const n = Math.min(left, Math.round(count * share));
    if (n > 0) buckets.push([bucket === 0 ? 0 : 2 ** (bucket + 5), n]);
    left -= n;
  });
  if (left > 0 && buckets.length > 0) buckets[buckets.length - 1][1] += left;
  return buckets;
}

export class DocumentBuilder {
  constructor(head = {}) {
    const start_ns = 86_400_000_000_000;
    const length_ns = head.length_ns ?? 10_000_000_000;
    this.document = {
      format: 'dwell-profile', version: 1, dwell: '0.1.0',
      host: head.host ?? 'db-07', kernel: head.kernel ?? '6.18.0-amd64', cpus: head.cpus ?? 8,
      target: head.target ?? '-p 4242', options: head.options ?? ['min=0', 'stacks=16384'],
      window: {
        start_ns, end_ns: start_ns + length_ns, length_ns,
        start_unix_ns: 1796038907123456789, end_unix_ns: 1796038907123456789 + length_ns,
        start_time: '2026-11-30T11:41:47.123456789Z',
      },
      totals: null, modules: [], frames: [], stacks: [], processes: [], threads: [], rows: [],
      timeline: null, intervals: [],
      losses: [], unresolved: [], warnings: head.warnings ?? [],
      cost: {kernel_memory_bytes: 18_874_368, user_memory_bytes: 41_943_040,
             recorder_cpu_ns: 184_000_000},
    };
  }

  module(path, kind = 'file') {
    return this.document.modules.push({path, build_id: '0123456789abcdef', kind}) - 1;
  }

  frame(name, module, kind = 'user', how = kind === 'kernel' ? 'kallsyms' : 'symtab') {
    const {frames} = this.document;
    return frames.push({
      name, function: how === 'none' ? '' : name, symbol: '', module,
      address: `0x${(0x1000 + frames.length * 64).toString(16)}`, offset: 18, how, kind,
    }) - 1;
  }

  // Frames from the leaf.
  stack(frames, {user_complete = true, truncated = false} = {}) {
    return this.document.stacks.push({frames, user_complete, truncated}) - 1;
  }

  process(pid, name, executable, command_line) {
    return this.document.processes.push({
      pid, parent_pid: 1, exec_id: 1, start_boottime_ns: 1_000_000 * pid, name, executable,
      command_line,
    }) - 1;
  }

  thread(process, tid, name, {running_ns = 0, lost_ns = 0, filtered_ns = 0, filtered_intervals = 0,
                              folded = 0, end = 'alive', kernel = false, schedstat = true,
                              residual_ns = 0} = {}) {
    const {window, threads} = this.document;
    return threads.push({
      process, tid, name, birth_ns: window.start_ns, end_ns: window.end_ns, end, kernel, folded,
      times: {...zeroTimes(), running_ns, lost_ns, filtered_ns, filtered_intervals},
      residual_ns, schedstat: schedstat ? {} : null,
    }) - 1;
  }

  row(thread, stack, wait_class, cause, {count = 1, blocked_ns = 0, run_queue_ns = 0,
                                         censored = 'no', overflow = false, max_ns} = {}) {
    const total_ns = blocked_ns + run_queue_ns;
    const mean = total_ns / count;
    const {rows, threads} = this.document;
    const {times} = threads[thread];
    const cut = censored === 'no' ? '' : 'censored_';
    times[`${cut}blocked_ns`] += blocked_ns;
    times[`${cut}run_queue_ns`] += run_queue_ns;
    times.intervals += count;
    if (!kRunQueueClasses.has(wait_class)) times.blocked_intervals += count;
    if (overflow) {
      times.overflow_ns += total_ns;
      times.overflow_intervals += count;
    }
    return rows.push({
      thread, stack, class: wait_class, cause, state: 1, censored, overflow, count, total_ns,
      blocked_ns, run_queue_ns,
      max_ns: max_ns ?? (count === 1 ? total_ns : Math.min(total_ns, Math.round(mean * 5))),
      histogram: histogramOf(count, mean),
    }) - 1;
  }

  // One wait of the timeline, `offset_ns` into the window.
  interval(thread, stack, wait_class, cause, offset_ns, {blocked_ns = 0, run_queue_ns = 0,
                                                         cpu = 0, censored = 'no'} = {}) {
    this.document.intervals.push({
      thread, stack, class: wait_class, cause, state: 1, censored, cpu,
      start_ns: this.document.window.start_ns + offset_ns, blocked_ns, run_queue_ns,
    });
  }

  loss(name, meaning, count, ns, loss = true) {
    this.document.losses.push({name, meaning, count, ns, loss});
  }

  // Sums everything up, sorts the rows as the exporter does, and returns the document.
  finish() {
    const {document} = this;
    const sums = zeroTimes();
    let residual_ns = 0;
    for (const thread of document.threads) {
      const {times} = thread;
      // Time that a filter kept out of the rows was spent blocked all the same.
      times.blocked_ns += times.filtered_ns;
      times.intervals += times.filtered_intervals;
      times.alive_ns = times.running_ns + times.run_queue_ns + times.blocked_ns + times.lost_ns +
        times.censored_run_queue_ns + times.censored_blocked_ns + thread.residual_ns;
      if (thread.schedstat) {
        thread.schedstat = {
          on_cpu_ns: times.running_ns + 41_000,
          run_queue_ns: times.run_queue_ns + times.censored_run_queue_ns - 7_000,
        };
      }
      for (const field of kTimeFields) sums[field] += times[field];
      residual_ns += thread.residual_ns;
    }
    document.rows.sort((a, b) => b.total_ns - a.total_ns);
    document.intervals.sort((a, b) => a.thread - b.thread || a.start_ns - b.start_ns);
    const sum = (field) => document.rows.reduce((total, row) => total + row[field], 0);
    document.totals = {
      intervals: sum('count'), off_cpu_ns: sum('total_ns'), blocked_ns: sum('blocked_ns'),
      run_queue_ns: sum('run_queue_ns'), threads: sums, residual_ns,
    };
    return document;
  }
}
