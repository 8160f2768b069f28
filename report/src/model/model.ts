// The document as columns: what every view of the page reads. Built once per page, never changed.
//
// A row is one row of the document, or, behind those, one thread's time that has no stack (running,
// lost, filtered out), so that all rows of a thread together are the wall time it was alive.
import {ContextTree} from './contexts.ts';
import type {ProfileDocument, StackEntry, ThreadEntry} from './document.ts';
import {labelFrames, LabelTable, type LabelKind} from './labels.ts';
import {visibleName} from './text.ts';

export interface RowColumns {
  length: number;
  recorded: number; // the first `recorded` rows are the document's, the rest are time without stack
  thread: Int32Array;
  stack: Int32Array; // -1 without a stack
  context: Int32Array;
  cause: Int32Array;
  class: Int32Array;
  blocked_ns: Float64Array;
  run_queue_ns: Float64Array;
  total_ns: Float64Array; // blocked + run queue
  wall_ns: Float64Array;  // total, or the time without stack
  count: Float64Array;
  max_ns: Float64Array;
}

export interface Model {
  document: ProfileDocument;
  labels: LabelTable;
  frameLabel: Int32Array;
  contexts: ContextTree;
  rows: RowColumns;
  causes: string[];
  classes: string[];
  processLabel: Int32Array;
  threadLabel: Int32Array;
  threadNameLabel: Int32Array;
  causeLabel: Int32Array;
  classLabel: Int32Array;
}

// The word for time without a stack, where a cause or a class is expected.
export const kRunning = '(running)';
export const kLost = '(lost)';
export const kFiltered = '(filtered out)';

class Words {
  readonly list: string[] = [];
  private readonly numbers = new Map<string, number>();
  number(word: string): number {
    let n = this.numbers.get(word);
    if (n === undefined) {
      n = this.list.length;
      this.numbers.set(word, n);
      this.list.push(word);
    }
    return n;
  }
}

export function threadTitle(thread: ThreadEntry): string {
  if (thread.folded > 0) return `${visibleName(thread.name, 64)} × ${thread.folded} (folded)`;
  return `${visibleName(thread.name, 64)} (${thread.tid})`;
}

// Stacks whose root end is missing hang below a frame that says so, not beside whole stacks.
function missingRoot(stack: StackEntry, document: ProfileDocument): string | null {
  const root = stack.frames[stack.frames.length - 1];
  if (root === undefined) return '[no stack]';
  if (document.frames[root]!.kind === 'placeholder') return null;
  if (stack.truncated) return '[root frames missing: deeper than the limit]';
  if (!stack.user_complete && document.frames[root]!.kind === 'user') {
    return '[root frames missing: unwinding stopped]';
  }
  return null;
}

function contextOfStacks(document: ProfileDocument, labels: LabelTable, contexts: ContextTree,
                         frameLabel: Int32Array): Int32Array {
  return Int32Array.from(document.stacks, (stack) => {
    const missing = missingRoot(stack, document);
    let node = 0;
    if (missing !== null) node = contexts.child(0, labels.number('placeholder', missing, '-'));
    for (let i = stack.frames.length - 1; i >= 0; --i) {
      node = contexts.child(node, frameLabel[stack.frames[i]!]!);
    }
    return node;
  });
}

interface Bare { // a thread's time without a stack
  thread: number;
  kind: LabelKind;
  word: string;
  ns: number;
}

function timeWithoutStack(document: ProfileDocument): Bare[] {
  const bare: Bare[] = [];
  document.threads.forEach((thread, i) => {
    const {running_ns, lost_ns, filtered_ns} = thread.times;
    if (running_ns > 0) bare.push({thread: i, kind: 'running', word: kRunning, ns: running_ns});
    if (lost_ns > 0) bare.push({thread: i, kind: 'lost', word: kLost, ns: lost_ns});
    if (filtered_ns > 0) bare.push({thread: i, kind: 'filtered', word: kFiltered, ns: filtered_ns});
  });
  return bare;
}

function emptyColumns(recorded: number, length: number): RowColumns {
  return {
    length, recorded,
    thread: new Int32Array(length), stack: new Int32Array(length).fill(-1),
    context: new Int32Array(length), cause: new Int32Array(length), class: new Int32Array(length),
    blocked_ns: new Float64Array(length), run_queue_ns: new Float64Array(length),
    total_ns: new Float64Array(length), wall_ns: new Float64Array(length),
    count: new Float64Array(length), max_ns: new Float64Array(length),
  };
}

function fillRecorded(rows: RowColumns, document: ProfileDocument, contextOfStack: Int32Array,
                      causes: Words, classes: Words): void {
  document.rows.forEach((row, i) => {
    rows.thread[i] = row.thread;
    rows.stack[i] = row.stack;
    rows.context[i] = contextOfStack[row.stack]!;
    rows.cause[i] = causes.number(row.cause);
    rows.class[i] = classes.number(row.class);
    rows.blocked_ns[i] = row.blocked_ns;
    rows.run_queue_ns[i] = row.run_queue_ns;
    rows.total_ns[i] = row.total_ns;
    rows.wall_ns[i] = row.total_ns;
    rows.count[i] = row.count;
    rows.max_ns[i] = row.max_ns;
  });
}

export function buildModel(document: ProfileDocument): Model {
  const labels = new LabelTable();
  const contexts = new ContextTree(labels.number('all', 'all'));
  const frameLabel = labelFrames(document, labels);
  const contextOfStack = contextOfStacks(document, labels, contexts, frameLabel);
  const causes = new Words();
  const classes = new Words();
  const bare = timeWithoutStack(document);
  const rows = emptyColumns(document.rows.length, document.rows.length + bare.length);
  fillRecorded(rows, document, contextOfStack, causes, classes);
  bare.forEach(({thread, kind, word, ns}, k) => {
    const i = rows.recorded + k;
    rows.thread[i] = thread;
    rows.context[i] = contexts.child(0, labels.number(kind, word));
    rows.cause[i] = causes.number(word);
    rows.class[i] = classes.number(word);
    rows.wall_ns[i] = ns;
  });
  return {
    document, labels, frameLabel, contexts, rows, causes: causes.list, classes: classes.list,
    processLabel: Int32Array.from(document.processes, (p, i) =>
      labels.number('process', `${visibleName(p.name, 64)} (${p.pid})`, String(i))),
    threadLabel: Int32Array.from(document.threads, (t, i) =>
      labels.number('thread', threadTitle(t), String(i))),
    threadNameLabel: Int32Array.from(document.threads, (t) =>
      labels.number('thread', t.name, 'name')),
    causeLabel: Int32Array.from(causes.list, (word) => labels.number('cause', word)),
    classLabel: Int32Array.from(classes.list, (word) => labels.number('class', word)),
  };
}
