// One flame graph over the selected rows. Rows are ordered so that each box is a range of them;
// boxes are made when they are first looked at, which is only when they are wide enough to draw.
//
// Invariant: a node's total is the sum of its rows, thus self + totals of its children, exactly
// (integers below 2^53).
import type {Model} from './model.ts';
import {metricColumn} from './select.ts';
import type {Grouping, Metric} from './view.ts';

export interface FlameNode {
  parent: FlameNode | null;
  label: number;
  depth: number; // 0: the root
  from: number;  // its rows are order[from .. to)
  to: number;
  total: number;
  children: FlameNode[] | null; // null: not looked at yet
}

interface Group { // one level of grouping: a label per row
  labelOf: (row: number) => number;
}

function groupsOf(model: Model, grouping: Grouping): Group[] {
  const {rows, document: {threads}} = model;
  const process = {labelOf: (r: number) => model.processLabel[threads[rows.thread[r]!]!.process]!};
  const thread = {labelOf: (r: number) => model.threadLabel[rows.thread[r]!]!};
  const name = {labelOf: (r: number) => model.threadNameLabel[rows.thread[r]!]!};
  switch (grouping) {
    case 'process-thread': return [process, thread];
    case 'process-name': return [process, name];
    case 'name': return [name];
    case 'cause': return [{labelOf: (r) => model.causeLabel[rows.cause[r]!]!}];
    case 'class': return [{labelOf: (r) => model.classLabel[rows.class[r]!]!}];
    case 'none': return [];
  }
}

// Brings rows with equal keys together and keeps their order otherwise.
function stablyGrouped(order: Int32Array, keyOf: (row: number) => number,
                       keys: number): Int32Array {
  const next = new Int32Array(keys + 1);
  for (const row of order) ++next[keyOf(row) + 1]!;
  for (let k = 0; k < keys; ++k) next[k + 1]! += next[k]!;
  const grouped = new Int32Array(order.length);
  for (const row of order) grouped[next[keyOf(row)]!++] = row;
  return grouped;
}

export class FlameTree {
  readonly root: FlameNode;
  readonly order: Int32Array;
  private readonly sums: Float64Array; // sums[i]: of order[0 .. i)
  private readonly groups: Group[];
  private readonly bareDepth: number; // labels of a row without stack

  // `selected` is in the order of the rows' paths, as selectRows returns it.
  constructor(readonly model: Model, metric: Metric, grouping: Grouping, selected: Int32Array) {
    this.groups = groupsOf(model, grouping);
    // Running time grouped by cause is "(running)" once, not a second time below itself.
    const repeated = grouping === 'cause' || grouping === 'class';
    this.bareDepth = repeated ? 1 : this.groups.length + 1;
    let order = selected;
    for (const {labelOf} of [...this.groups].reverse()) {
      order = stablyGrouped(order, labelOf, model.labels.length);
    }
    const values = metricColumn(model.rows, metric);
    const sums = new Float64Array(order.length + 1);
    for (let i = 0; i < order.length; ++i) sums[i + 1] = sums[i]! + values[order[i]!]!;
    this.order = order;
    this.sums = sums;
    this.root = {parent: null, label: model.allLabel, depth: 0, from: 0, to: order.length,
                 total: sums[order.length]!, children: null};
  }

  // Of a row, the label of its box at a depth (1: below the root); -1 where its path has ended.
  labelAt(row: number, depth: number): number {
    const level = depth - 1;
    if (level < this.groups.length) return this.groups[level]!.labelOf(row);
    const {rows, paths} = this.model;
    if (row >= rows.recorded && depth > this.bareDepth) return -1;
    const at = paths.start[rows.path[row]!]! + level - this.groups.length;
    return at < paths.start[rows.path[row]! + 1]! ? paths.labels[at]! : -1;
  }

  groupMatches(row: number, matches: Uint8Array): boolean {
    return this.groups.some(({labelOf}) => matches[labelOf(row)] === 1);
  }

  // Largest first.
  childrenOf(node: FlameNode): FlameNode[] {
    if (node.children !== null) return node.children;
    const depth = node.depth + 1;
    const children: FlameNode[] = [];
    let from = node.from;
    while (from < node.to) {
      const label = this.labelAt(this.order[from]!, depth);
      let to = from + 1;
      while (to < node.to && this.labelAt(this.order[to]!, depth) === label) ++to;
      if (label >= 0) {
        children.push({parent: node, label, depth, from, to,
                       total: this.sums[to]! - this.sums[from]!, children: null});
      }
      from = to;
    }
    node.children = children.sort((a, b) => b.total - a.total || a.label - b.label);
    return children;
  }

  // How many intervals a node holds, and the longest.
  countOf(node: FlameNode): {count: number; max_ns: number} {
    const {rows} = this.model;
    let count = 0;
    let max_ns = 0;
    for (let i = node.from; i < node.to; ++i) {
      count += rows.count[this.order[i]!]!;
      max_ns = Math.max(max_ns, rows.max_ns[this.order[i]!]!);
    }
    return {count, max_ns};
  }

  // Labels from the root's child down to `node`.
  pathTo(node: FlameNode): number[] {
    const path: number[] = [];
    for (let n = node; n.parent !== null; n = n.parent) path.push(n.label);
    return path.reverse();
  }

  // The node at the end of the path, or of as much of it as this graph has.
  follow(path: readonly number[]): FlameNode {
    let node = this.root;
    for (const label of path) {
      const child = this.childrenOf(node).find((c) => c.label === label);
      if (child === undefined) return node;
      node = child;
    }
    return node;
  }
}
