// The stacks of a document as paths of labels, root first, and their lexicographic order. Rows in
// that order make every box of a flame graph a contiguous range of rows: a graph needs no tree of
// all its boxes, which 50,000 stacks would make a million of (flame_tree.ts).
import type {ProfileDocument, StackEntry} from './document.ts';
import type {LabelTable} from './labels.ts';

export class Paths {
  // Path p is labels[start[p] .. start[p + 1]).
  readonly start: Int32Array;
  readonly labels: Int32Array;
  readonly rank: Int32Array; // of each path in lexicographic order; equal paths differ in rank

  constructor(paths: readonly (readonly number[])[]) {
    this.start = new Int32Array(paths.length + 1);
    for (let p = 0; p < paths.length; ++p) this.start[p + 1] = this.start[p]! + paths[p]!.length;
    this.labels = new Int32Array(this.start[paths.length]!);
    paths.forEach((path, p) => this.labels.set(path, this.start[p]));
    const order = Int32Array.from(paths, (_, p) => p).sort((a, b) => this.compare(a, b));
    this.rank = new Int32Array(paths.length);
    order.forEach((p, rank) => (this.rank[p] = rank));
  }

  lengthOf(path: number): number {
    return this.start[path + 1]! - this.start[path]!;
  }

  private compare(a: number, b: number): number {
    const {start, labels} = this;
    const endA = start[a + 1]!;
    const endB = start[b + 1]!;
    let i = start[a]!;
    let j = start[b]!;
    while (i < endA && j < endB) {
      const difference = labels[i++]! - labels[j++]!;
      if (difference !== 0) return difference;
    }
    return endA - i - (endB - j) || a - b;
  }
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

export function pathsOfStacks(document: ProfileDocument, labels: LabelTable,
                              frameLabel: Int32Array): number[][] {
  return document.stacks.map((stack) => {
    const path = [];
    const missing = missingRoot(stack, document);
    if (missing !== null) path.push(labels.number('placeholder', missing, '-'));
    for (let i = stack.frames.length - 1; i >= 0; --i) path.push(frameLabel[stack.frames[i]!]!);
    return path;
  });
}
