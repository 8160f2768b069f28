// The bars of the timeline: a canvas that stays in place while a spacer behind it scrolls, with
// pointer and keyboard. Drawing over a stretch of time zooms into it.
import {useEffect, useMemo, useRef, useState} from 'preact/hooks';
import {describeInterval} from '../model/describe_interval.ts';
import {spoken} from '../model/describe.ts';
import {
  end_ns, intervalAt, lastStartedBy, revealing, zoomed, fitted, type Span, type Timeline,
} from '../model/timeline.ts';
import {toggled} from '../model/view.ts';
import {
  BarPainter, kAxis_px, kDarkBars, kLightBars, kNames_px, kRow_px, nsAt, xOf, type Place,
} from '../timeline/paint.ts';
import {sizedContext, useDark, useWidth} from './media.ts';
import type {ViewProps} from './toolbar.tsx';
import {Tooltip} from './tooltip.tsx';

const kMostHeight_px = 360;
const kZoomStep = 2;
const kLeastDrag_px = 6; // a shorter one is a click
const kSlack_px = 4;     // how far beside a thin wait the pointer still means it

interface BarsProps extends ViewProps {
  timeline: Timeline;
  rows: number[];
  span: Span;
  admits: (interval: number) => boolean;
  show: (span: Span | null) => void;
}

// Where a key leads, from one wait to another; null: nowhere.
function movedPlace({timeline, rows, span}: BarsProps, key: string, place: Place): Place | null {
  const thread = rows[place.row]!;
  const first = timeline.first[thread]!;
  const last = timeline.first[thread + 1]! - 1;
  const inSight = () => Math.max(first, lastStartedBy(timeline, thread,
    (span.from_ns + span.to_ns) / 2));
  const toRow = (row: number): Place => {
    const next = rows[row]!;
    const at = place.interval < 0 ? (span.from_ns + span.to_ns) / 2
      : timeline.start_ns[place.interval]!;
    const interval = Math.max(timeline.first[next]!, lastStartedBy(timeline, next, at));
    return {row, interval};
  };
  switch (key) {
    case 'ArrowRight':
      return {row: place.row, interval: place.interval < 0 ? inSight()
        : Math.min(last, place.interval + 1)};
    case 'ArrowLeft':
      return {row: place.row, interval: place.interval < 0 ? inSight()
        : Math.max(first, place.interval - 1)};
    case 'ArrowDown': return place.row + 1 < rows.length ? toRow(place.row + 1) : null;
    case 'ArrowUp': return place.row > 0 ? toRow(place.row - 1) : null;
    default: return null;
  }
}

// The wait with the keyboard's focus, and which rows are in sight.
function usePlace(props: BarsProps, height: number) {
  const {timeline, rows, span, show} = props;
  const scroller = useRef<HTMLDivElement>(null);
  const [scrollTop, setScrollTop] = useState(0);
  const [place, setPlace] = useState<Place>({row: 0, interval: -1});
  useEffect(() => setPlace({row: 0, interval: -1}), [rows]);
  const current = place.row < rows.length ? place : {row: 0, interval: -1};
  const moveTo = (next: Place) => {
    setPlace(next);
    const element = scroller.current!;
    const top = next.row * kRow_px;
    if (top < element.scrollTop) element.scrollTop = top;
    const bottom = top + kRow_px + kAxis_px;
    if (bottom > element.scrollTop + height) element.scrollTop = bottom - height;
    if (next.interval < 0) return;
    const shown = revealing(timeline, span, timeline.start_ns[next.interval]!,
                            end_ns(timeline, next.interval));
    if (shown.from_ns !== span.from_ns) show(shown);
  };
  return {scroller, scrollTop, setScrollTop, place: current, moveTo};
}

interface Hover {
  row: number;
  interval: number;
  x: number;
  y: number;
}

// What the pointer is over, and the stretch that it draws.
function usePointer(props: BarsProps, width: number, scrollTop: number,
                    moveTo: (place: Place) => void) {
  const {timeline, rows, span, show} = props;
  const canvas = useRef<HTMLCanvasElement>(null);
  const [hover, setHover] = useState<Hover | null>(null);
  const [range, setRange] = useState<[number, number] | null>(null);
  const pointAt = (event: MouseEvent) => {
    const frame = canvas.current!.getBoundingClientRect();
    const x = event.clientX - frame.left;
    const y = event.clientY - frame.top;
    const row = y < kAxis_px ? -1 : Math.floor((y - kAxis_px + scrollTop) / kRow_px);
    const thread = rows[row];
    const slack_ns = kSlack_px * (span.to_ns - span.from_ns) / width;
    const interval = thread === undefined || x < kNames_px ? -1
      : intervalAt(timeline, thread, nsAt(x, span, width), slack_ns);
    return {row: thread === undefined ? -1 : row, interval, x};
  };
  const onPointerMove = (event: PointerEvent) => {
    const {row, interval, x} = pointAt(event);
    if (range) setRange([range[0], Math.max(kNames_px, x)]);
    setHover(row >= 0 && interval >= 0 && !range
      ? {row, interval, x: event.clientX, y: event.clientY} : null);
  };
  const onPointerDown = (event: PointerEvent) => {
    const {x} = pointAt(event);
    if (event.button !== 0 || x < kNames_px) return;
    canvas.current!.setPointerCapture(event.pointerId);
    setRange([x, x]);
  };
  const onPointerUp = (event: PointerEvent) => {
    const {row, interval} = pointAt(event);
    setRange(null);
    if (range && Math.abs(range[1] - range[0]) >= kLeastDrag_px) {
      const [from, to] = range[0] < range[1] ? range : [range[1], range[0]];
      show(fitted(timeline, {from_ns: nsAt(from, span, width), to_ns: nsAt(to, span, width)}));
    } else if (row >= 0) {
      moveTo({row, interval});
    }
  };
  const onWheel = (event: WheelEvent) => { // as a pinch comes, too
    if (!event.ctrlKey) return;
    event.preventDefault();
    const at = nsAt(Math.max(kNames_px, pointAt(event).x), span, width);
    show(zoomed(timeline, span, Math.exp(-event.deltaY / 200), at));
  };
  const handlers = {onPointerMove, onPointerDown, onPointerUp, onWheel,
                    onPointerCancel: () => setRange(null), onPointerLeave: () => setHover(null)};
  return {canvas, hover, setHover, range, handlers};
}

export function TimelineBars(props: BarsProps) {
  const {model, view, update, timeline, rows, span, admits, show} = props;
  const content = kAxis_px + rows.length * kRow_px;
  const height = Math.min(kMostHeight_px, content);
  const {scroller, scrollTop, setScrollTop, place, moveTo} = usePlace(props, height);
  const width = useWidth(scroller);
  const {canvas, hover, setHover, range, handlers} = usePointer(props, width, scrollTop, moveTo);
  const [hasFocus, setHasFocus] = useState(false);
  const dark = useDark();
  useEffect(() => {
    if (canvas.current === null || width === 0) return;
    new BarPainter(sizedContext(canvas.current, width, height), model,
                   dark ? kDarkBars : kLightBars).paint({
      rows, span, width, height, scrollTop, admits, focus: hasFocus ? place : null,
      hovered: hover?.interval ?? -1, range,
    });
  });
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const at = place.interval < 0 ? (span.from_ns + span.to_ns) / 2
      : timeline.start_ns[place.interval]!;
    const next = movedPlace(props, event.key, place);
    setHover(null);
    if (next) moveTo(next);
    else if (event.key === '+' || event.key === '=') show(zoomed(timeline, span, kZoomStep, at));
    else if (event.key === '-') show(zoomed(timeline, span, 1 / kZoomStep, at));
    else if (event.key === 'Home' || event.key === 'Escape') show(null);
    else if (event.key === 'Enter' || event.key === ' ') {
      const choice = {facet: 'thread' as const, value: rows[place.row]!};
      update({filter: toggled(view.filter, 'only', choice)});
    } else return;
    event.preventDefault();
    event.stopPropagation(); // Escape would zoom the flame graph out as well
  };
  const description = useMemo(() => describeInterval(model, rows[place.row]!, place.interval),
                              [model, rows, place.row, place.interval]);
  const frame = hasFocus && place.interval >= 0 && !hover && canvas.current
    ? canvas.current.getBoundingClientRect() : null;
  return (
    <div class="flame-frame">
      <div id="timeline" class="flame timeline" ref={scroller} tabIndex={0} role="application"
           aria-label={'Timeline. Left and Right move between waits, Up and Down between threads, ' +
             'plus and minus zoom, Home shows all, Enter filters by the thread.'}
           aria-describedby="timeline-spoken" style={{height: `${height}px`}}
           onScroll={(event) => setScrollTop(event.currentTarget.scrollTop)}
           onKeyDown={onKeyDown} onFocus={() => setHasFocus(true)}
           onBlur={() => setHasFocus(false)}>
        <canvas ref={canvas} class="timeline-canvas"
                style={{width: `${width}px`, height: `${height}px`}} {...handlers} />
        <div style={{height: `${content - height}px`}} />
      </div>
      <p class="hidden" id="timeline-spoken" aria-live="polite">
        {hasFocus ? spoken(description) : ''}</p>
      {hover && <Tooltip description={describeInterval(model, rows[hover.row]!, hover.interval)}
                         x={hover.x} y={hover.y} />}
      {frame && <Tooltip description={description} y={Math.min(frame.bottom, innerHeight)}
        x={Math.min(frame.right, frame.left + xOf(end_ns(timeline, place.interval), span, width))} />}
    </div>
  );
}
