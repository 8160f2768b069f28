// One flame graph: the selected rows summed over groups and calling contexts. Node 0 is the root;
// children have greater numbers than their parents. total = self + totals of the children, exactly
// (integers below 2^53).
import {enlarged} from './contexts.ts';
import type {Model} from './model.ts';
import {metricColumn} from './select.ts';
import type {Grouping, Metric} from './view.ts';

export class FlameTree {
  length = 1;
  parent = new Int32Array(1024);
  label = new Int32Array(1024);
  total = new Float64Array(0);
  count = new Float64Array(0);
  max_ns = new Float64Array(0);
  private firstChild = new Int32Array(0); // of node n: children[firstChild[n] .. firstChild[n + 1])
  private children = new Int32Array(0);
  private sorted = new Uint8Array(0);

  constructor() {
    this.parent[0] = -1;
  }

  append(parent: number, label: number): number {
    if (this.length === this.parent.length) {
      this.parent = enlarged(this.parent, this.length * 2) as Int32Array<ArrayBuffer>;
      this.label = enlarged(this.label, this.length * 2) as Int32Array<ArrayBuffer>;
    }
    this.parent[this.length] = parent;
    this.label[this.length] = label;
    return this.length++;
  }

  // Adds what rows put on nodes up to the root, and lists the children of each node.
  finish(total: Float64Array<ArrayBuffer>, count: Float64Array<ArrayBuffer>,
         max_ns: Float64Array<ArrayBuffer>): void {
    const {length, parent} = this;
    const first = new Int32Array(length + 1);
    for (let n = length - 1; n > 0; --n) {
      const p = parent[n]!;
      total[p]! += total[n]!;
      count[p]! += count[n]!;
      if (max_ns[n]! > max_ns[p]!) max_ns[p] = max_ns[n]!;
      ++first[p + 1]!;
    }
    for (let n = 0; n < length; ++n) first[n + 1]! += first[n]!;
    const next = first.slice();
    this.children = new Int32Array(Math.max(0, length - 1));
    for (let n = 1; n < length; ++n) this.children[next[parent[n]!]!++] = n;
    this.firstChild = first;
    this.sorted = new Uint8Array(length);
    Object.assign(this, {total, count, max_ns});
  }

  // Largest first. Sorted on first use: most nodes are never drawn.
  childrenOf(node: number): Int32Array {
    const children = this.children.subarray(this.firstChild[node]!, this.firstChild[node + 1]!);
    if (!this.sorted[node]) {
      const {total, label} = this;
      children.sort((a, b) => total[b]! - total[a]! || label[a]! - label[b]!);
      this.sorted[node] = 1;
    }
    return children;
  }

  // Labels from the root's child down to `node`.
  pathTo(node: number): number[] {
    const path: number[] = [];
    for (let n = node; n > 0; n = this.parent[n]!) path.push(this.label[n]!);
    return path.reverse();
  }

  // The node at the end of the path, or of as much of it as this tree has.
  follow(path: readonly number[]): number {
    let node = 0;
    for (const label of path) {
      const child = this.childrenOf(node).find((c) => this.label[c] === label);
      if (child === undefined) return node;
      node = child;
    }
    return node;
  }
}

// The labels of the groups above a row's stack.
function groupLabels(model: Model, grouping: Grouping, row: number): number[] {
  const {rows, document: {threads}} = model;
  const thread = rows.thread[row]!;
  const hasStack = row < rows.recorded;
  switch (grouping) {
    case 'process': {
      const process = threads[thread]!.process;
      return [model.processLabel[process]!, model.threadLabel[thread]!];
    }
    case 'name': return [model.threadNameLabel[thread]!];
    case 'cause': return hasStack ? [model.causeLabel[rows.cause[row]!]!] : [];
    case 'class': return hasStack ? [model.classLabel[rows.class[row]!]!] : [];
    case 'none': return [];
  }
}

// The group node of each selected row; makes the group nodes.
function groupRows(model: Model, tree: FlameTree, grouping: Grouping,
                   selected: Int32Array): Int32Array {
  const made = new Map<number, number>(); // parent * labels + label -> node
  const labelCount = model.labels.length;
  return selected.map((row) => {
    let node = 0;
    for (const label of groupLabels(model, grouping, row)) {
      const key = node * labelCount + label;
      let child = made.get(key);
      if (child === undefined) {
        child = tree.append(node, label);
        made.set(key, child);
      }
      node = child;
    }
    return node;
  });
}

// Order that brings the rows of one group together, groups by number.
function rowsByGroup(groupOf: Int32Array, groupCount: number): Int32Array {
  const first = new Int32Array(groupCount + 1);
  for (const group of groupOf) ++first[group + 1]!;
  for (let g = 0; g < groupCount; ++g) first[g + 1]! += first[g]!;
  const order = new Int32Array(groupOf.length);
  groupOf.forEach((group, i) => (order[first[group]!++] = i));
  return order;
}

export function buildFlameTree(model: Model, metric: Metric, grouping: Grouping,
                               selected: Int32Array): FlameTree {
  const tree = new FlameTree();
  tree.label[0] = model.contexts.label[0]!;
  const groupOf = groupRows(model, tree, grouping, selected);
  const order = rowsByGroup(groupOf, tree.length);
  const nodeOfRow = new Int32Array(selected.length);
  const {contexts} = model;
  const nodeOf = new Int32Array(contexts.length); // of a context, in the group being built
  const groupSeen = new Int32Array(contexts.length).fill(-1);
  const path: number[] = [];
  for (const i of order) {
    const group = groupOf[i]!;
    // Up to the first context that this group has, then down again, making nodes.
    let context = model.rows.context[selected[i]!]!;
    while (context !== 0 && groupSeen[context] !== group) {
      path.push(context);
      context = contexts.parent[context]!;
    }
    let node = context === 0 ? group : nodeOf[context]!;
    while (path.length > 0) {
      const below = path.pop()!;
      node = tree.append(node, contexts.label[below]!);
      nodeOf[below] = node;
      groupSeen[below] = group;
    }
    nodeOfRow[i] = node;
  }
  const values = metricColumn(model.rows, metric);
  const total = new Float64Array(tree.length);
  const count = new Float64Array(tree.length);
  const max_ns = new Float64Array(tree.length);
  selected.forEach((row, i) => {
    const node = nodeOfRow[i]!;
    total[node]! += values[row]!;
    count[node]! += model.rows.count[row]!;
    max_ns[node] = Math.max(max_ns[node]!, model.rows.max_ns[row]!);
  });
  tree.finish(total, count, max_ns);
  return tree;
}
