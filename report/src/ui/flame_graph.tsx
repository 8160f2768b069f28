// The flame graph: a canvas that is scrolled by a spacer behind it, with pointer and keyboard.
import {useEffect, useLayoutEffect, useMemo, useRef, useState} from 'preact/hooks';
import {findBox, layOut, neighbour, boxAt, type Box, type Direction} from '../flame/layout.ts';
import {depthAt, kRow_px, LabelStyles, Painter, topOf} from '../flame/paint.ts';
import {kDark, kLight} from '../flame/colours.ts';
import {describeNode, describeRest, spoken} from '../model/describe.ts';
import type {FlameNode, FlameTree} from '../model/flame_tree.ts';
import type {Model} from '../model/model.ts';
import {Tooltip} from './tooltip.tsx';
import {useDark, useWidth} from './media.ts';

export interface FlameProps {
  model: Model;
  tree: FlameTree;
  zoom: FlameNode;
  matches: Uint8Array | null;
  rootAtBottom: boolean;
  onZoom: (node: FlameNode) => void;
}

const kShare = 0.68; // of the window's height, at most
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

function useDrawing(props: FlameProps, width: number) {
  const {model, tree, zoom} = props;
  const dark = useDark();
  const styles = useMemo(() => new LabelStyles(model, dark ? kDark : kLight), [model, dark]);
  const layout = useMemo(() => layOut(tree, zoom, width), [tree, zoom, width]);
  const contentHeight = layout.levels.length * kRow_px;
  const height = Math.min(contentHeight, Math.max(300, Math.round(innerHeight * kShare)));
  return {styles, layout, contentHeight, height};
}

function sizeCanvas(canvas: HTMLCanvasElement, width: number, height: number) {
  const scale = devicePixelRatio || 1;
  const wanted = {width: Math.round(width * scale), height: Math.round(height * scale)};
  if (canvas.width !== wanted.width) canvas.width = wanted.width;
  if (canvas.height !== wanted.height) canvas.height = wanted.height;
  const context = canvas.getContext('2d', {alpha: false})!;
  context.setTransform(scale, 0, 0, scale, 0, 0);
  return context;
}

export function FlameGraph(props: FlameProps) {
  const {model, tree, zoom, rootAtBottom, onZoom} = props;
  const scroller = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const width = useWidth(scroller);
  const {styles, layout, contentHeight, height} = useDrawing(props, width);
  const [scrollTop, setScrollTop] = useState(0);
  const [hover, setHover] = useState<{box: Box; x: number; y: number} | null>(null);
  const [focus, setFocus] = useState<Box | null>(null);
  const [hasFocus, setHasFocus] = useState(false);
  const levels = layout.levels.length;
  const focused = focus ?? layout.levels[layout.zoom.depth]![0]!;

  useLayoutEffect(() => { // a new picture: forget the boxes of the old one, show the zoomed box
    setHover(null);
    setFocus((old) => (old ? findBox(layout, old.node) : null));
    const top = topOf(layout.zoom.depth, levels, rootAtBottom);
    const wanted = rootAtBottom ? top + (kContext + 1) * kRow_px - height : top - kContext * kRow_px;
    if (scroller.current) scroller.current.scrollTop = Math.max(0, wanted);
  }, [layout, rootAtBottom]);

  useEffect(() => {
    if (!canvas.current || width === 0) return;
    const context = sizeCanvas(canvas.current, width, height);
    new Painter(context, model, styles).paint({
      layout, rootAtBottom, width, height, contentHeight, scrollTop, matches: props.matches,
      focused: hasFocus ? focused : null, hovered: hover?.box ?? null,
    });
  });

  const boxUnder = (event: MouseEvent): Box | null => {
    const frame = canvas.current!.getBoundingClientRect();
    const y = event.clientY - frame.top + scrollTop;
    return boxAt(layout, depthAt(y, levels, rootAtBottom), event.clientX - frame.left);
  };
  const enter = (box: Box) => {
    if (box.rest > 0) onZoom(box.node);
    else onZoom(box.node === zoom ? zoomedOut(zoom) : box.node);
  };
  const moveTo = (box: Box) => {
    setFocus(box);
    setHover(null);
    const top = topOf(box.depth, levels, rootAtBottom);
    const element = scroller.current!;
    if (top < element.scrollTop) element.scrollTop = top;
    else if (top + kRow_px > element.scrollTop + height) element.scrollTop = top + kRow_px - height;
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const direction = directionOf(event.key, rootAtBottom);
    if (direction) moveTo(neighbour(layout, focused, direction));
    else if (event.key === 'Enter' || event.key === ' ') enter(focused);
    else if (event.key === 'Home') onZoom(tree.root);
    else return;
    event.preventDefault();
  };
  const describe = (box: Box) => (box.rest > 0 ? describeRest(tree, box.node, box.rest)
                                               : describeNode(tree, box.node, zoom));
  // In the corner of the graph: beside the box it would hide where the keys lead next.
  const corner = () => {
    const frame = canvas.current!.getBoundingClientRect();
    return {x: frame.right, y: Math.min(frame.bottom, innerHeight)};
  };
  const keyboardCard = hasFocus && focus !== null && hover === null && canvas.current !== null;
  return (
    <div class="flame-frame">
      <div id="flame" class="flame" ref={scroller} tabIndex={0} role="application"
           aria-label="Flame graph. Arrow keys move between frames, Enter zooms, Escape zooms out."
           aria-describedby="flame-spoken" style={{height: `${height}px`}}
           onScroll={(event) => setScrollTop(event.currentTarget.scrollTop)}
           onKeyDown={onKeyDown} onFocus={() => setHasFocus(true)}
           onBlur={() => setHasFocus(false)}>
        <canvas ref={canvas} class="flame-canvas" style={{width: `${width}px`, height: `${height}px`}}
                onMouseMove={(event) => {
                  const box = boxUnder(event);
                  setHover(box && {box, x: event.clientX, y: event.clientY});
                }}
                onMouseLeave={() => setHover(null)}
                onClick={(event) => {
                  const box = boxUnder(event);
                  if (box) { setFocus(box); enter(box); }
                }} />
        <div class="flame-space" style={{height: `${contentHeight - height}px`}} />
      </div>
      <p class="hidden" id="flame-spoken" aria-live="polite">
        {hasFocus ? spoken(describe(focused)) : ''}</p>
      {hover && <Tooltip description={describe(hover.box)} x={hover.x} y={hover.y} />}
      {keyboardCard && <Tooltip description={describe(focused)} {...corner()} />}
    </div>
  );
}
