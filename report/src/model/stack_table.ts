// The table of stacks: rows with the same stack, cause and class added up over threads.
import {addBuckets, emptyHistogram, type Histogram} from './histogram.ts';
import type {Model} from './model.ts';
import type {Order} from './view.ts';

export interface StackLine {
  stack: number;
  cause: number;
  class: number;
  total_ns: number;
  blocked_ns: number;
  run_queue_ns: number;
  count: number;
  max_ns: number;
  censored: boolean; // some interval crosses an edge of the window
  overflow: boolean;
  rows: number[];
}

export function stackLines(model: Model, selected: Int32Array): StackLine[] {
  const {rows, document} = model;
  const lines = new Map<number, StackLine>();
  for (const row of selected) {
    if (row >= rows.recorded) continue;
    const key = (rows.stack[row]! * model.causes.length + rows.cause[row]!) * model.classes.length +
      rows.class[row]!;
    let line = lines.get(key);
    if (line === undefined) {
      line = {
        stack: rows.stack[row]!, cause: rows.cause[row]!, class: rows.class[row]!,
        total_ns: 0, blocked_ns: 0, run_queue_ns: 0, count: 0, max_ns: 0,
        censored: false, overflow: false, rows: [],
      };
      lines.set(key, line);
    }
    line.total_ns += rows.total_ns[row]!;
    line.blocked_ns += rows.blocked_ns[row]!;
    line.run_queue_ns += rows.run_queue_ns[row]!;
    line.count += rows.count[row]!;
    line.max_ns = Math.max(line.max_ns, rows.max_ns[row]!);
    const entry = document.rows[row]!;
    line.censored ||= entry.censored !== 'no';
    line.overflow ||= entry.overflow;
    line.rows.push(row);
  }
  return [...lines.values()];
}

export function meanOf(line: StackLine): number {
  return line.count > 0 ? line.total_ns / line.count : 0;
}

const kStackColumns: Record<string, (line: StackLine) => number> = {
  'total': (line) => line.total_ns,
  'blocked': (line) => line.blocked_ns,
  'run-queue': (line) => line.run_queue_ns,
  'count': (line) => line.count,
  'mean': meanOf,
  'max': (line) => line.max_ns,
};

// A sorted copy. By cause: alphabetical, then the largest total.
export function sortedLines(model: Model, lines: StackLine[], order: Order): StackLine[] {
  const sign = order.down ? -1 : 1;
  const byTotal = (a: StackLine, b: StackLine) => b.total_ns - a.total_ns || a.stack - b.stack;
  if (order.column === 'cause') {
    const name = (line: StackLine) => model.causes[line.cause]!;
    return [...lines].sort((a, b) =>
      (name(a) < name(b) ? sign : name(a) > name(b) ? -sign : byTotal(a, b)));
  }
  const value = kStackColumns[order.column] ?? kStackColumns['total']!;
  return [...lines].sort((a, b) => sign * (value(a) - value(b)) || byTotal(a, b));
}

export function histogramOf(model: Model, line: StackLine): Histogram {
  const histogram = emptyHistogram();
  for (const row of line.rows) addBuckets(histogram, model.document.rows[row]!.histogram);
  return histogram;
}
