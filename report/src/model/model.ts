// The document as columns: what every view of the page reads. Built once per page, never changed.
//
// A row is one row of the document, or, behind those, one thread's time that has no stack (running,
// lost, filtered out), so that all rows of a thread together are the wall time it was alive.
import type {ProfileDocument, ThreadEntry} from './document.ts';
import {kEdgeOf, kEdges, kInside} from './edges.ts';
import {labelFrames, LabelTable, type LabelKind} from './labels.ts';
import {Paths, pathsOfStacks} from './paths.ts';
import {visibleName} from './text.ts';
import {buildTimeline, type Timeline} from './timeline.ts';

export interface RowColumns {
  length: number;
  recorded: number; // the first `recorded` rows are the document's, the rest are time without stack
  thread: Int32Array;
  path: Int32Array; // of recorded rows: the stack
  cause: Int32Array;
  class: Int32Array;
  edge: Int32Array; // into kEdges
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
  allLabel: number; // of the root
  paths: Paths;
  rows: RowColumns;
  timeline: Timeline | null;
  rowsByPath: Int32Array; // all rows, in the order of their paths
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

interface Bare { // a thread's time without a stack
  thread: number;
  kind: LabelKind;
  word: string;
  ns: number;
}

function bareKind(word: string): LabelKind | null {
  switch (word) {
    case kRunning: return 'running';
    case kLost: return 'lost';
    case kFiltered: return 'filtered';
    default: return null;
  }
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
    thread: new Int32Array(length), path: new Int32Array(length), cause: new Int32Array(length),
    class: new Int32Array(length), edge: new Int32Array(length),
    blocked_ns: new Float64Array(length), run_queue_ns: new Float64Array(length),
    total_ns: new Float64Array(length), wall_ns: new Float64Array(length),
    count: new Float64Array(length), max_ns: new Float64Array(length),
  };
}

function fillRecorded(rows: RowColumns, document: ProfileDocument, causes: Words,
                      classes: Words): void {
  document.rows.forEach((row, i) => {
    rows.thread[i] = row.thread;
    rows.path[i] = row.stack;
    rows.cause[i] = causes.number(row.cause);
    rows.class[i] = classes.number(row.class);
    rows.edge[i] = kEdges.indexOf(kEdgeOf[row.censored] ?? kInside);
    rows.blocked_ns[i] = row.blocked_ns;
    rows.run_queue_ns[i] = row.run_queue_ns;
    rows.total_ns[i] = row.total_ns;
    rows.wall_ns[i] = row.total_ns;
    rows.count[i] = row.count;
    rows.max_ns[i] = row.max_ns;
  });
}

// Appends the paths of time without stack: one label each, shared by all threads.
function fillBare(rows: RowColumns, bare: Bare[], labels: LabelTable, paths: number[][],
                  causes: Words, classes: Words): void {
  const pathOf = new Map<string, number>();
  bare.forEach(({thread, kind, word, ns}, k) => {
    let path = pathOf.get(word);
    if (path === undefined) {
      path = paths.push([labels.number(kind, word)]) - 1;
      pathOf.set(word, path);
    }
    const i = rows.recorded + k;
    rows.thread[i] = thread;
    rows.path[i] = path;
    rows.cause[i] = causes.number(word);
    rows.class[i] = classes.number(word);
    rows.wall_ns[i] = ns;
  });
}

export function buildModel(document: ProfileDocument): Model {
  const labels = new LabelTable();
  const allLabel = labels.number('all', 'all');
  const stackPaths = pathsOfStacks(document, labels, labelFrames(document, labels));
  const causes = new Words();
  const classes = new Words();
  const bare = timeWithoutStack(document);
  const rows = emptyColumns(document.rows.length, document.rows.length + bare.length);
  fillRecorded(rows, document, causes, classes);
  fillBare(rows, bare, labels, stackPaths, causes, classes);
  const paths = new Paths(stackPaths);
  const rowsByPath = Int32Array.from({length: rows.length}, (_, row) => row)
    .sort((a, b) => paths.rank[rows.path[a]!]! - paths.rank[rows.path[b]!]! || a - b);
  return {
    document, labels, allLabel, paths, rows, rowsByPath,
    timeline: buildTimeline(document, causes.list, classes.list),
    causes: causes.list, classes: classes.list,
    processLabel: Int32Array.from(document.processes, (p, i) =>
      labels.number('process', `${visibleName(p.name, 64)} (${p.pid})`, String(i))),
    threadLabel: Int32Array.from(document.threads, (t, i) =>
      labels.number('thread', threadTitle(t), String(i))),
    threadNameLabel: Int32Array.from(document.threads, (t) =>
      labels.number('thread', t.name, 'name')),
    causeLabel: Int32Array.from(causes.list, (word, i) =>
      bareKind(word) === null ? labels.number('cause', word, String(i))
                              : labels.number(bareKind(word)!, word)),
    classLabel: Int32Array.from(classes.list, (word, i) =>
      bareKind(word) === null ? labels.number('class', word, String(i))
                              : labels.number(bareKind(word)!, word)),
  };
}
