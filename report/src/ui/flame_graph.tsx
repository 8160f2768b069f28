// The flame graph: a canvas that stays in place while a spacer behind it scrolls, with pointer and
// keyboard.
import type {RefObject} from 'preact';
import {useEffect, useLayoutEffect, useMemo, useRef, useState} from 'preact/hooks';
import {kDark, kLight} from '../flame/colours.ts';
import {
  boxAt, findBox, layOut, neighbour, type Box, type Direction, type Layout,
} from '../flame/layout.ts';
import {depthAt, kRow_px, LabelStyles, Painter, topOf} from '../flame/paint.ts';
import {describeNode, describeRest, spoken} from '../model/describe.ts';
import type {FlameNode, FlameTree} from '../model/flame_tree.ts';
import {sizedContext, useDark, useWidth} from './media.ts';
import {Tooltip} from './tooltip.tsx';

export interface FlameProps {
  tree: FlameTree;
  zoom: FlameNode;
  matches: Uint8Array | null;
  rootAtBottom: boolean;
  onZoom: (node: FlameNode) => void;
}

interface Geometry {
  layout: Layout;
  levels: number;
  width: number;
  height: number; // of the canvas
  contentHeight: number;
}

interface Hover {
  box: Box;
  x: number;
  y: number;
}

const kShare = 0.68; // of the window's height, at most
const kLeastHeight_px = 300;
const kContext = 2;  // ancestors left in sight above the zoomed box

// One step out: the nearest ancestor that shows more than the zoomed box does.
export function zoomedOut(zoom: FlameNode): FlameNode {
  let node = zoom;
  while (node.parent !== null && node.total === zoom.total) node = node.parent;
  return node;
}

function directionOf(key: string, rootAtBottom: boolean): Direction | null {
  switch (key) {
    case 'ArrowLeft': return 'left';
    case 'ArrowRight': return 'right';
    case 'ArrowDown': return rootAtBottom ? 'shallower' : 'deeper';
    case 'ArrowUp': return rootAtBottom ? 'deeper' : 'shallower';
    default: return null;
  }
}

function useGeometry(tree: FlameTree, zoom: FlameNode, width: number): Geometry {
  const layout = useMemo(() => layOut(tree, zoom, width), [tree, zoom, width]);
  const levels = layout.levels.length;
  const contentHeight = levels * kRow_px;
  const most = Math.max(kLeastHeight_px, Math.round(innerHeight * kShare));
  return {layout, levels, width, height: Math.min(contentHeight, most), contentHeight};
}

function usePainting(canvas: RefObject<HTMLCanvasElement | null>, props: FlameProps,
                     geometry: Geometry, scrollTop: number, focused: Box | null,
                     hovered: Box | null): void {
  const {model} = props.tree;
  const dark = useDark();
  const styles = useMemo(() => new LabelStyles(model, dark ? kDark : kLight), [model, dark]);
  useEffect(() => {
    if (canvas.current === null || geometry.width === 0) return;
    new Painter(sizedContext(canvas.current, geometry.width, geometry.height), model, styles).paint({
      ...geometry, rootAtBottom: props.rootAtBottom, scrollTop, matches: props.matches, focused,
      hovered,
    });
  });
}

// Which boxes have the pointer and the keyboard, and how the graph is scrolled. All of them belong
// to one layout: another one forgets them and brings the zoomed box into sight.
function usePlace(scroller: RefObject<HTMLDivElement | null>, geometry: Geometry,
                  rootAtBottom: boolean) {
  const {layout, levels, height} = geometry;
  const [scrollTop, setScrollTop] = useState(0);
  const [hover, setHover] = useState<Hover | null>(null);
  const [focus, setFocus] = useState<Box | null>(null);
  useLayoutEffect(() => {
    setHover(null);
    setFocus((old) => (old ? findBox(layout, old.node) : null));
    const top = topOf(layout.zoom.depth, levels, rootAtBottom);
    const wanted = rootAtBottom ? top + (kContext + 1) * kRow_px - height
      : top - kContext * kRow_px;
    if (scroller.current) scroller.current.scrollTop = Math.max(0, wanted);
  }, [layout, rootAtBottom]);
  const moveTo = (box: Box) => {
    setFocus(box);
    setHover(null);
    const top = topOf(box.depth, levels, rootAtBottom);
    const element = scroller.current!;
    if (top < element.scrollTop) element.scrollTop = top;
    else if (top + kRow_px > element.scrollTop + height) element.scrollTop = top + kRow_px - height;
  };
  const focused = focus ?? layout.levels[layout.zoom.depth]![0]!;
  return {scrollTop, setScrollTop, hover, setHover, focus, focused, setFocus, moveTo};
}

// The card in the corner of the graph: beside the box it would hide where the keys lead next.
function CornerCard({tree, zoom, box, canvas}: {tree: FlameTree; zoom: FlameNode; box: Box;
                                                canvas: HTMLCanvasElement}) {
  const frame = canvas.getBoundingClientRect();
  return <Tooltip description={describeBox(tree, zoom, box)} x={frame.right}
                  y={Math.min(frame.bottom, innerHeight)} />;
}

function describeBox(tree: FlameTree, zoom: FlameNode, box: Box) {
  return box.rest > 0 ? describeRest(tree, box.node, box.rest) : describeNode(tree, box.node, zoom);
}

export function FlameGraph(props: FlameProps) {
  const {tree, zoom, rootAtBottom, onZoom} = props;
  const scroller = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const [hasFocus, setHasFocus] = useState(false);
  const geometry = useGeometry(tree, zoom, useWidth(scroller));
  const {layout, levels, width, height} = geometry;
  const place = usePlace(scroller, geometry, rootAtBottom);
  const {hover, focused} = place;
  usePainting(canvas, props, geometry, place.scrollTop, hasFocus ? focused : null,
              hover?.box ?? null);

  const boxUnder = (event: MouseEvent): Box | null => {
    const frame = canvas.current!.getBoundingClientRect();
    const depth = depthAt(event.clientY - frame.top + place.scrollTop, levels, rootAtBottom);
    return boxAt(layout, depth, event.clientX - frame.left);
  };
  const enter = (box: Box) =>
    onZoom(box.node === zoom && box.rest === 0 ? zoomedOut(zoom) : box.node);
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const direction = directionOf(event.key, rootAtBottom);
    if (direction) place.moveTo(neighbour(layout, focused, direction));
    else if (event.key === 'Enter' || event.key === ' ') enter(focused);
    else if (event.key === 'Home') onZoom(tree.root);
    else return;
    event.preventDefault();
  };
  const onMouseMove = (event: MouseEvent) => {
    const box = boxUnder(event);
    place.setHover(box && {box, x: event.clientX, y: event.clientY});
  };
  const onClick = (event: MouseEvent) => {
    const box = boxUnder(event);
    if (box === null) return;
    place.setFocus(box);
    enter(box);
  };
  return (
    <div class="flame-frame">
      <div id="flame" class="flame" ref={scroller} tabIndex={0} role="application"
           aria-label="Flame graph. Arrow keys move between frames, Enter zooms, Escape zooms out."
           aria-describedby="flame-spoken" style={{height: `${height}px`}}
           onScroll={(event) => place.setScrollTop(event.currentTarget.scrollTop)}
           onKeyDown={onKeyDown} onFocus={() => setHasFocus(true)}
           onBlur={() => setHasFocus(false)}>
        <canvas ref={canvas} class="flame-canvas"
                style={{width: `${width}px`, height: `${height}px`}} onMouseMove={onMouseMove}
                onMouseLeave={() => place.setHover(null)} onClick={onClick} />
        <div style={{height: `${geometry.contentHeight - height}px`}} />
      </div>
      <p class="hidden" id="flame-spoken" aria-live="polite">
        {hasFocus ? spoken(describeBox(tree, zoom, focused)) : ''}</p>
      {hover &&
        <Tooltip description={describeBox(tree, zoom, hover.box)} x={hover.x} y={hover.y} />}
      {hasFocus && place.focus && !hover && canvas.current &&
        <CornerCard tree={tree} zoom={zoom} box={focused} canvas={canvas.current} />}
    </div>
  );
}
