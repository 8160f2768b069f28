// The table of stacks: rows with the same stack, cause and class added up over threads. Which line
// a row belongs to does not depend on the view and is worked out once; the sums are columns by
// line, so that another filter or another letter of the search is one pass over numbers.
import {addBuckets, emptyHistogram, type Histogram} from './histogram.ts';
import type {Model} from './model.ts';
import type {Order} from './view.ts';

export class StackLines {
  readonly count: number; // of all lines
  readonly lineOf: Int32Array; // of a recorded row
  private readonly first: Int32Array; // of line n: members[first[n] .. first[n + 1])
  private readonly members: Int32Array;

  constructor(readonly model: Model) {
    const {rows, causes, classes} = model;
    const known = new Map<number, number>();
    this.lineOf = new Int32Array(rows.recorded);
    for (let row = 0; row < rows.recorded; ++row) {
      const key = (rows.path[row]! * causes.length + rows.cause[row]!) * classes.length +
        rows.class[row]!;
      let line = known.get(key);
      if (line === undefined) known.set(key, line = known.size);
      this.lineOf[row] = line;
    }
    this.count = known.size;
    this.first = new Int32Array(this.count + 1);
    for (const line of this.lineOf) ++this.first[line + 1]!;
    for (let n = 0; n < this.count; ++n) this.first[n + 1]! += this.first[n]!;
    const next = this.first.slice();
    this.members = new Int32Array(rows.recorded);
    this.lineOf.forEach((line, row) => (this.members[next[line]!++] = row));
  }

  rowsOf(line: number): Int32Array {
    return this.members.subarray(this.first[line]!, this.first[line + 1]!);
  }
}

// The sums of one view: of the lines with a selected row.
export interface StackSums {
  lines: Int32Array; // present lines
  isSelected: Uint8Array; // per row
  total_ns: Float64Array; // per line, as the rest
  blocked_ns: Float64Array;
  run_queue_ns: Float64Array;
  count: Float64Array;
  max_ns: Float64Array;
}

export function sumStacks(stacks: StackLines, selected: Int32Array): StackSums {
  const {model: {rows}, lineOf, count} = stacks;
  const column = () => new Float64Array(count);
  const sums = {
    isSelected: new Uint8Array(rows.length), total_ns: column(), blocked_ns: column(),
    run_queue_ns: column(), count: column(), max_ns: column(),
  };
  const present = new Uint8Array(count);
  for (const row of selected) {
    if (row >= rows.recorded) continue;
    const line = lineOf[row]!;
    present[line] = 1;
    sums.isSelected[row] = 1;
    sums.total_ns[line]! += rows.total_ns[row]!;
    sums.blocked_ns[line]! += rows.blocked_ns[row]!;
    sums.run_queue_ns[line]! += rows.run_queue_ns[row]!;
    sums.count[line]! += rows.count[row]!;
    if (rows.max_ns[row]! > sums.max_ns[line]!) sums.max_ns[line] = rows.max_ns[row]!;
  }
  const lines = Int32Array.from({length: count}, (_, line) => line).filter((n) => present[n] === 1);
  return {...sums, lines};
}

// One line, for the rows of the table that are in sight.
export interface StackLine {
  stack: number;
  cause: number;
  class: number;
  total_ns: number;
  blocked_ns: number;
  run_queue_ns: number;
  count: number;
  mean_ns: number;
  max_ns: number;
  censored: boolean; // some interval crosses an edge of the window
  overflow: boolean;
  rows: Int32Array; // selected
}

export function lineOf(stacks: StackLines, sums: StackSums, line: number): StackLine {
  const {model: {rows, document}} = stacks;
  const selected = stacks.rowsOf(line).filter((row) => sums.isSelected[row] === 1);
  const first = selected[0]!;
  const entries = Array.from(selected, (row) => document.rows[row]!);
  const count = sums.count[line]!;
  return {
    stack: rows.path[first]!, cause: rows.cause[first]!, class: rows.class[first]!,
    total_ns: sums.total_ns[line]!, blocked_ns: sums.blocked_ns[line]!,
    run_queue_ns: sums.run_queue_ns[line]!, count,
    mean_ns: count > 0 ? sums.total_ns[line]! / count : 0, max_ns: sums.max_ns[line]!,
    censored: entries.some((row) => row.censored !== 'no'),
    overflow: entries.some((row) => row.overflow), rows: selected,
  };
}

// The value by which a column orders the lines. By cause: the alphabetical rank of the cause.
function orderingOf(stacks: StackLines, sums: StackSums, column: string): Float64Array {
  switch (column) {
    case 'blocked': return sums.blocked_ns;
    case 'run-queue': return sums.run_queue_ns;
    case 'count': return sums.count;
    case 'max': return sums.max_ns;
    case 'mean': return sums.total_ns.map((ns, line) => ns / Math.max(1, sums.count[line]!));
    case 'cause': {
      const {causes, rows} = stacks.model;
      const rank = new Map([...causes].sort().map((cause, i) => [cause, i]));
      return Float64Array.from({length: stacks.count}, (_, line) =>
        rank.get(causes[rows.cause[stacks.rowsOf(line)[0]!]!]!)!);
    }
    default: return sums.total_ns;
  }
}

// The present lines in the wanted order; equal ones by total, then by number.
export function sortedLines(stacks: StackLines, sums: StackSums, order: Order): Int32Array {
  const values = orderingOf(stacks, sums, order.column);
  const sign = order.down ? -1 : 1;
  const {total_ns} = sums;
  return sums.lines.slice().sort((a, b) =>
    sign * (values[a]! - values[b]!) || total_ns[b]! - total_ns[a]! || a - b);
}

export function histogramOf(model: Model, line: StackLine): Histogram {
  const histogram = emptyHistogram();
  for (const row of line.rows) addBuckets(histogram, model.document.rows[row]!.histogram);
  return histogram;
}
