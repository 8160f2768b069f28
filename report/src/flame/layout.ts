// Where the boxes of a flame graph stand: a pure function of tree, zoom and width. Depth 0 is the
// root. The ancestors of the zoomed node span the whole width; below it, width is in proportion.
//
// Children are placed largest first, so that all boxes too narrow to draw end up side by side: one
// `rest` box stands for them, and no time disappears from the picture.
import type {FlameNode, FlameTree} from '../model/flame_tree.ts';

export const kNarrowest_px = 1.5; // narrower boxes go into the rest box
const kNarrowestRest_px = 0.5;

export interface Box {
  node: FlameNode; // of a rest box: the parent
  depth: number;
  x: number;
  width: number;
  rest: number; // 0, or how many children this box stands for
}

export interface Layout {
  levels: Box[][]; // by depth, from left to right
  zoom: FlameNode;
}

// From the root to `node`.
export function chainTo(node: FlameNode): FlameNode[] {
  const chain: FlameNode[] = [];
  for (let n: FlameNode | null = node; n !== null; n = n.parent) chain.push(n);
  return chain.reverse();
}

function placeChildren(tree: FlameTree, box: Box, scale: number, into: Box[]): void {
  const children = tree.childrenOf(box.node);
  let x = box.x;
  for (let i = 0; i < children.length; ++i) {
    const node = children[i]!;
    const width = node.total * scale;
    if (width < kNarrowest_px) {
      let rest = 0;
      for (let j = i; j < children.length; ++j) rest += children[j]!.total;
      if (rest * scale >= kNarrowestRest_px) {
        into.push({node: box.node, depth: box.depth + 1, x, width: rest * scale,
                   rest: children.length - i});
      }
      return;
    }
    into.push({node, depth: box.depth + 1, x, width, rest: 0});
    x += width;
  }
}

export function layOut(tree: FlameTree, zoom: FlameNode, width: number): Layout {
  const levels: Box[][] = chainTo(zoom).map((node, depth) => [{node, depth, x: 0, width, rest: 0}]);
  const scale = zoom.total > 0 ? width / zoom.total : 0;
  for (;;) {
    const level: Box[] = [];
    for (const box of levels[levels.length - 1]!) {
      if (box.rest === 0) placeChildren(tree, box, scale, level);
    }
    if (level.length === 0) return {levels, zoom};
    levels.push(level);
  }
}

// The box of a level at x, by bisection.
export function boxAt(layout: Layout, depth: number, x: number): Box | null {
  const level = layout.levels[depth];
  if (level === undefined) return null;
  let low = 0;
  let high = level.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (level[middle]!.x + level[middle]!.width <= x) low = middle + 1;
    else high = middle;
  }
  const box = level[low];
  return box !== undefined && x >= box.x ? box : null;
}

export function findBox(layout: Layout, node: FlameNode): Box | null {
  const level = layout.levels[node.depth] ?? [];
  return level.find((box) => box.node === node && box.rest === 0) ?? null;
}

export type Direction = 'deeper' | 'shallower' | 'left' | 'right';

// Where an arrow key leads from `box`; the box itself where there is nothing.
export function neighbour(layout: Layout, box: Box, direction: Direction): Box {
  const level = layout.levels[box.depth]!;
  switch (direction) {
    case 'left': return level[level.indexOf(box) - 1] ?? box;
    case 'right': return level[level.indexOf(box) + 1] ?? box;
    case 'shallower': return boxAt(layout, box.depth - 1, box.x + box.width / 2) ?? box;
    case 'deeper': {
      if (box.rest > 0) return box;
      const below = boxAt(layout, box.depth + 1, box.x + Math.min(1, box.width / 2));
      return below ?? box;
    }
  }
}
