// A document for the unit tests: two processes, three threads, four stacks; sums easy to follow.
import type {
  FrameEntry, FrameKind, ProfileDocument, RowEntry, ThreadEntry, ThreadTimes,
} from '../src/model/document.ts';

export function times(change: Partial<ThreadTimes> = {}): ThreadTimes {
  return {
    alive_ns: 0, running_ns: 0, run_queue_ns: 0, blocked_ns: 0, censored_run_queue_ns: 0,
    censored_blocked_ns: 0, lost_ns: 0, filtered_ns: 0, overflow_ns: 0, intervals: 0,
    blocked_intervals: 0, filtered_intervals: 0, overflow_intervals: 0, ...change,
  };
}

export function frame(name: string, kind: FrameKind = 'user', module = 0): FrameEntry {
  return {
    name, function: name, symbol: '', module, address: '0x10', offset: 0, how: 'symtab', kind,
  };
}

export function row(thread: number, stack: number, cause: string,
                    change: Partial<RowEntry> = {}): RowEntry {
  const blocked_ns = change.blocked_ns ?? 0;
  const run_queue_ns = change.run_queue_ns ?? 0;
  const total_ns = blocked_ns + run_queue_ns;
  return {
    thread, stack, class: 'interruptible', cause, state: 1, censored: 'no', overflow: false,
    count: 1, total_ns, blocked_ns, run_queue_ns, max_ns: total_ns, histogram: [[64, 1]], ...change,
  };
}

export function thread(process: number, tid: number, name: string, t: Partial<ThreadTimes>,
                       change: Partial<ThreadEntry> = {}): ThreadEntry {
  return {
    process, tid, name, birth_ns: 0, end_ns: 1000, end: 'alive', kernel: false, folded: 0,
    times: times(t), residual_ns: 0, schedstat: null, ...change,
  };
}

// main -> work -> read (kernel), main -> work -> lock, main -> idle, and a stack that is not whole.
export function smallDocument(): ProfileDocument {
  return {
    format: 'dwell-profile', version: 1, dwell: '0.1.0', host: 'here', kernel: '6.1', cpus: 2,
    target: '-p 1', options: ['min=0'],
    window: {start_ns: 0, end_ns: 1000, length_ns: 1000, start_time: '2026-11-30T11:41:47.1Z'},
    totals: {
      intervals: 7, off_cpu_ns: 1500, blocked_ns: 1300, run_queue_ns: 200, residual_ns: 0,
      threads: times({alive_ns: 2100, running_ns: 550, run_queue_ns: 200, blocked_ns: 1300,
                      lost_ns: 50, intervals: 7}),
    },
    modules: [{path: '/bin/app', build_id: '', kind: 'file'},
              {path: '[kernel]', build_id: '', kind: 'kernel'}],
    frames: [frame('main'), frame('work'), frame('lock'), frame('idle'),
             frame('read', 'kernel', 1), frame('work')],
    stacks: [
      {frames: [4, 1, 0], user_complete: true, truncated: false},
      {frames: [2, 5, 0], user_complete: true, truncated: false},
      {frames: [3, 0], user_complete: true, truncated: false},
      {frames: [2], user_complete: false, truncated: true},
    ],
    processes: [
      {pid: 1, parent_pid: 0, exec_id: 1, start_boottime_ns: 1, name: 'app', executable: '/bin/app',
       command_line: 'app -x'},
      {pid: 9, parent_pid: 0, exec_id: 1, start_boottime_ns: 2, name: 'other', executable: '',
       command_line: ''},
    ],
    threads: [
      thread(0, 1, 'app', {alive_ns: 1000, running_ns: 200, blocked_ns: 700, run_queue_ns: 100}),
      thread(0, 2, 'pool', {alive_ns: 700, running_ns: 50, blocked_ns: 500, run_queue_ns: 100,
                            lost_ns: 50}),
      thread(1, 9, 'pool', {alive_ns: 400, running_ns: 300, blocked_ns: 100}),
    ],
    rows: [
      row(0, 0, 'read', {blocked_ns: 400, run_queue_ns: 100, count: 3, max_ns: 300}),
      row(0, 1, 'futex', {blocked_ns: 300}),
      row(1, 0, 'read', {blocked_ns: 200, run_queue_ns: 100}),
      row(1, 2, 'futex', {blocked_ns: 300, censored: 'left'}),
      row(2, 3, 'futex', {blocked_ns: 100, overflow: true}),
    ],
    timeline: null, intervals: [],
    losses: [], unresolved: [], warnings: [],
    stack_health: {
      off_cpu_ns: 1500, whole_ns: 1400, cut_ns: 100, lost_ns: 0, by_pointer_ns: 0, no_name_ns: 0,
      modules: [], hints: [],
    },
    cost: {kernel_memory_bytes: 0, user_memory_bytes: 0, recorder_cpu_ns: 0},
  };
}
