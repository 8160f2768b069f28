// The JSON document that `dwell report --json` prints and that the HTML report carries: its types,
// and the check that every index in it points somewhere. Everything after `checkDocument` may index
// without looking; nothing before it may.
//
// All `_ns` are nanoseconds. Above 2^53 (104 days) JavaScript rounds them to a few nanoseconds.

export const kDocumentVersion = 1;

export type FrameKind = 'user' | 'kernel' | 'placeholder';

export interface ModuleEntry {
  path: string;
  build_id: string;
  kind: string;
}
export interface FrameEntry {
  name: string;
  function: string;
  symbol: string;
  module: number;
  address: string;
  offset: number;
  how: string;
  kind: FrameKind;
  file?: string; // of reports with --lines, where it is known
  line?: number;
  inlined?: boolean; // into the next frame
}
export interface StackEntry {
  frames: number[]; // leaf first: kernel frames, then user frames
  user_complete: boolean;
  truncated: boolean;
}
export interface ProcessEntry {
  pid: number;
  parent_pid: number;
  exec_id: number;
  start_boottime_ns: number;
  name: string;
  executable: string;
  command_line: string;
}
export interface ThreadTimes {
  alive_ns: number;
  running_ns: number;
  run_queue_ns: number;
  blocked_ns: number;
  censored_run_queue_ns: number;
  censored_blocked_ns: number;
  lost_ns: number;
  filtered_ns: number;
  overflow_ns: number;
  intervals: number;
  blocked_intervals: number;
  filtered_intervals: number;
  overflow_intervals: number;
}
export interface ThreadEntry {
  process: number;
  tid: number;
  name: string;
  birth_ns: number;
  end_ns: number;
  end: string;
  kernel: boolean;
  folded: number; // 0, or how many threads this entry stands for
  times: ThreadTimes;
  residual_ns: number;
  schedstat: {on_cpu_ns: number; run_queue_ns: number; stretch_ns: number} | null;
}
export interface RowEntry {
  thread: number;
  stack: number;
  class: string;
  cause: string;
  state: number;
  censored: 'no' | 'left' | 'right' | 'both';
  overflow: boolean;
  count: number;
  total_ns: number;
  blocked_ns: number;
  run_queue_ns: number;
  max_ns: number;
  histogram: [number, number][];
}
export interface IntervalEntry { // of the timeline: one wait, cut to the window
  thread: number;
  stack: number;
  class: string;
  cause: string;
  censored: 'no' | 'left' | 'right' | 'both';
  cpu: number;
  start_ns: number;
  blocked_ns: number;
  run_queue_ns: number;
}
export interface LossEntry {
  name: string;
  meaning: string;
  count: number;
  ns: number | null;
  loss: boolean;
}
export interface UnresolvedEntry {
  module: number;
  frames: number;
  reason: string;
  remedy: string;
}
export interface FramesShare {
  frames: number;
  off_cpu_ns: number;
}
export interface ModuleHealth {
  module: number;
  all: FramesShare;
  unwind_data: FramesShare;
  frame_pointer: FramesShare;
  cut: FramesShare;
  cut_remedy: string;
  no_name: FramesShare;
  no_name_remedy: string;
}
export interface RuntimeHint {
  process: number;
  runtime: string;
  no_name_ns: number;
  cut_ns: number;
  remedy: string;
}
export interface StackHealth {
  off_cpu_ns: number; // of waits with a user stack
  whole_ns: number;
  cut_ns: number;
  lost_ns: number;
  by_pointer_ns: number;
  no_name_ns: number;
  modules: ModuleHealth[]; // most time first
  hints: RuntimeHint[];
}
export interface ProfileDocument {
  format: string;
  version: number;
  dwell: string;
  host: string;
  kernel: string;
  cpus: number;
  target: string;
  options: string[];
  window: {start_ns: number; end_ns: number; length_ns: number; start_time: string};
  totals: {
    intervals: number;
    off_cpu_ns: number;
    blocked_ns: number;
    run_queue_ns: number;
    threads: ThreadTimes;
    residual_ns: number;
  };
  modules: ModuleEntry[];
  frames: FrameEntry[];
  stacks: StackEntry[];
  processes: ProcessEntry[];
  threads: ThreadEntry[];
  rows: RowEntry[];
  timeline: {min_ns: number} | null; // null: recorded without --timeline
  intervals: IntervalEntry[];        // by thread, then by start
  losses: LossEntry[];
  unresolved: UnresolvedEntry[];
  warnings: string[];
  stack_health: StackHealth | null; // null: the document of an older Dwell
  cost: {kernel_memory_bytes: number; user_memory_bytes: number; recorder_cpu_ns: number};
}

// Why the page shows a message instead of a report. `remedy` is one sentence.
export class DocumentError extends Error {
  remedy: string;
  constructor(message: string, remedy: string) {
    super(message);
    this.remedy = remedy;
  }
}

const kRecordAgain =
  'Write the report again from the recording (dwell report --html), or copy the file again: ' +
  'it may have been cut short on its way.';

function damaged(what: string): DocumentError {
  return new DocumentError(`The data in this file is damaged: ${what}.`, kRecordAgain);
}

type Fields = Record<string, unknown>;

function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

// Every element of `value` has these string and number fields. Unknown fields are allowed.
function checkTable(document: Fields, table: string, strings: string[], numbers: string[]): void {
  const entries = document[table];
  if (!Array.isArray(entries)) throw damaged(`the table "${table}" is missing`);
  entries.forEach((entry: unknown, i) => {
    if (!isObject(entry)) throw damaged(`${table}[${i}] is not an object`);
    for (const field of strings) {
      if (typeof entry[field] !== 'string') throw damaged(`${table}[${i}].${field} is not text`);
    }
    for (const field of numbers) {
      if (!Number.isFinite(entry[field])) throw damaged(`${table}[${i}].${field} is not a number`);
    }
  });
}

function checkNumbers(object: unknown, name: string, fields: readonly string[]): void {
  if (!isObject(object)) throw damaged(`"${name}" is missing`);
  for (const field of fields) {
    if (!Number.isFinite(object[field])) throw damaged(`${name}.${field} is not a number`);
  }
}

export const kTimeFields: readonly (keyof ThreadTimes)[] = [
  'alive_ns', 'running_ns', 'run_queue_ns', 'blocked_ns', 'censored_run_queue_ns',
  'censored_blocked_ns', 'lost_ns', 'filtered_ns', 'overflow_ns', 'intervals',
  'blocked_intervals', 'filtered_intervals', 'overflow_intervals',
];

function checkHead(document: Fields): void {
  if (document.format !== 'dwell-profile') throw damaged('it is not a Dwell profile');
  const version = document.version;
  if (typeof version !== 'number') throw damaged('it has no version number');
  if (version > kDocumentVersion) {
    throw new DocumentError(
      `This data has document version ${version}; this page reads up to ${kDocumentVersion}.`,
      'A newer Dwell wrote it: write the HTML report with that Dwell.');
  }
  for (const field of ['dwell', 'host', 'kernel', 'target']) {
    if (typeof document[field] !== 'string') throw damaged(`"${field}" is not text`);
  }
  for (const field of ['options', 'warnings']) {
    const list = document[field];
    if (!Array.isArray(list) || list.some((text) => typeof text !== 'string')) {
      throw damaged(`"${field}" is not a list of texts`);
    }
  }
  checkNumbers(document, 'document', ['cpus']);
  checkNumbers(document.window, 'window', ['start_ns', 'end_ns', 'length_ns']);
  checkNumbers(document.totals, 'totals',
               ['intervals', 'off_cpu_ns', 'blocked_ns', 'run_queue_ns', 'residual_ns']);
  checkNumbers((document.totals as Fields).threads, 'totals.threads', kTimeFields);
  checkNumbers(document.cost, 'cost',
               ['kernel_memory_bytes', 'user_memory_bytes', 'recorder_cpu_ns']);
}

function checkTables(document: Fields): void {
  checkTable(document, 'modules', ['path', 'build_id', 'kind'], []);
  checkTable(document, 'frames', ['name', 'address', 'how', 'kind'], ['module', 'offset']);
  checkTable(document, 'stacks', [], []);
  checkTable(document, 'processes', ['name', 'executable', 'command_line'], ['pid']);
  checkTable(document, 'threads', ['name', 'end'], ['process', 'tid', 'folded', 'residual_ns']);
  checkTable(document, 'rows', ['class', 'cause', 'censored'],
             ['thread', 'stack', 'count', 'total_ns', 'blocked_ns', 'run_queue_ns', 'max_ns']);
  checkTable(document, 'intervals', ['class', 'cause', 'censored'],
             ['thread', 'stack', 'cpu', 'start_ns', 'blocked_ns', 'run_queue_ns']);
  checkTable(document, 'losses', ['name', 'meaning'], ['count']);
  checkTable(document, 'unresolved', ['reason', 'remedy'], ['module', 'frames']);
}

function checkHealth(document: Fields): void {
  const health = document.stack_health;
  if (health === null) return;
  checkNumbers(health, 'stack_health', ['off_cpu_ns', 'whole_ns', 'cut_ns', 'lost_ns',
                                        'by_pointer_ns', 'no_name_ns']);
  checkTable(health as Fields, 'modules', ['cut_remedy', 'no_name_remedy'], ['module']);
  checkTable(health as Fields, 'hints', ['runtime', 'remedy'],
             ['process', 'no_name_ns', 'cut_ns']);
  (health as unknown as StackHealth).modules.forEach((entry, i) => {
    for (const share of ['all', 'unwind_data', 'frame_pointer', 'cut', 'no_name'] as const) {
      checkNumbers(entry[share], `stack_health.modules[${i}].${share}`, ['frames', 'off_cpu_ns']);
    }
  });
}

function checkIndex(index: number, length: number, where: string): void {
  if (!Number.isInteger(index) || index < 0 || index >= length) {
    throw damaged(`${where} is ${index}, outside of its table of ${length}`);
  }
}

function checkReferences(document: ProfileDocument): void {
  const {modules, frames, stacks, processes, threads, rows, intervals} = document;
  frames.forEach((f, i) => checkIndex(f.module, modules.length, `frames[${i}].module`));
  stacks.forEach((stack, i) => {
    if (!Array.isArray(stack.frames)) throw damaged(`stacks[${i}].frames is missing`);
    for (const f of stack.frames) checkIndex(f, frames.length, `a frame of stacks[${i}]`);
  });
  threads.forEach((t, i) => {
    checkIndex(t.process, processes.length, `threads[${i}].process`);
    checkNumbers(t.times, `threads[${i}].times`, kTimeFields);
    if (t.schedstat) checkNumbers(t.schedstat, `threads[${i}].schedstat`, ['on_cpu_ns']);
  });
  rows.forEach((row, i) => {
    checkIndex(row.thread, threads.length, `rows[${i}].thread`);
    checkIndex(row.stack, stacks.length, `rows[${i}].stack`);
    if (!Array.isArray(row.histogram)) throw damaged(`rows[${i}].histogram is missing`);
  });
  intervals.forEach((interval, i) => {
    checkIndex(interval.thread, threads.length, `intervals[${i}].thread`);
    checkIndex(interval.stack, stacks.length, `intervals[${i}].stack`);
    const before = intervals[i - 1];
    if (before && (before.thread > interval.thread ||
                   (before.thread === interval.thread && before.start_ns > interval.start_ns))) {
      throw damaged(`intervals[${i}] is not in the order of its thread and start`);
    }
  });
  document.unresolved.forEach(
    (u, i) => checkIndex(u.module, modules.length, `unresolved[${i}].module`));
  document.stack_health?.modules.forEach(
    (m, i) => checkIndex(m.module, modules.length, `stack_health.modules[${i}].module`));
  document.stack_health?.hints.forEach(
    (h, i) => checkIndex(h.process, processes.length, `stack_health.hints[${i}].process`));
}

// Fields that a document of an older Dwell does not have.
function addMissing(document: Fields): void {
  document.timeline ??= null;
  document.intervals ??= [];
  document.stack_health ??= null;
  if (document.timeline !== null) checkNumbers(document.timeline, 'timeline', ['min_ns']);
}

// Returns `value` as a document, or throws DocumentError.
export function checkDocument(value: unknown): ProfileDocument {
  if (!isObject(value)) throw damaged('it is not a JSON object');
  checkHead(value);
  addMissing(value);
  checkTables(value);
  checkHealth(value);
  const document = value as unknown as ProfileDocument;
  checkReferences(document);
  return document;
}
