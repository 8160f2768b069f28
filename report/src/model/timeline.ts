// Single waits of a recording with --timeline, as columns by thread, and what a bar of them shows
// for a span of time. Times are nanoseconds since the start of the window. Pure functions.
import type {ProfileDocument} from './document.ts';
import {kEdgeOf, kEdges, kInside} from './edges.ts';

export interface Timeline {
  min_ns: number;    // shorter waits are not in it
  window_ns: number; // length of the window
  missing: number;   // waits that were long enough and did not fit
  threads: number[]; // those with a wait, in the document's order
  first: Int32Array; // of each thread: its first interval; the next entry is the end
  start_ns: Float64Array;
  blocked_ns: Float64Array;
  run_queue_ns: Float64Array;
  cause: Int32Array; // into Model.causes, -1: a cause without a row
  class: Int32Array; // into Model.classes, likewise
  edge: Int32Array;  // into kEdges
}

export interface Span {
  from_ns: number;
  to_ns: number;
}

const kMissing = ['timeline_ring_full', 'timeline_limit'];

export function buildTimeline(document: ProfileDocument, causes: string[],
                              classes: string[]): Timeline | null {
  const {timeline, intervals, threads, window} = document;
  if (timeline === null) return null;
  const causeOf = new Map(causes.map((word, i) => [word, i]));
  const classOf = new Map(classes.map((word, i) => [word, i]));
  const first = new Int32Array(threads.length + 1);
  for (const interval of intervals) ++first[interval.thread + 1]!;
  for (let i = 0; i < threads.length; ++i) first[i + 1]! += first[i]!;
  return {
    min_ns: timeline.min_ns, window_ns: window.length_ns,
    missing: document.losses.filter((loss) => kMissing.includes(loss.name))
      .reduce((n, loss) => n + loss.count, 0),
    threads: threads.flatMap((_, i) => (first[i + 1]! > first[i]! ? [i] : [])), first,
    start_ns: Float64Array.from(intervals, (x) => x.start_ns - window.start_ns),
    blocked_ns: Float64Array.from(intervals, (x) => x.blocked_ns),
    run_queue_ns: Float64Array.from(intervals, (x) => x.run_queue_ns),
    cause: Int32Array.from(intervals, (x) => causeOf.get(x.cause) ?? -1),
    class: Int32Array.from(intervals, (x) => classOf.get(x.class) ?? -1),
    edge: Int32Array.from(intervals, (x) => kEdges.indexOf(kEdgeOf[x.censored] ?? kInside)),
  };
}

export function end_ns(timeline: Timeline, interval: number): number {
  return timeline.start_ns[interval]! + timeline.blocked_ns[interval]! +
    timeline.run_queue_ns[interval]!;
}

// The last interval of the thread that starts at or before `ns`, or the one before its first.
export function lastStartedBy(timeline: Timeline, thread: number, ns: number): number {
  let low = timeline.first[thread]!;
  let high = timeline.first[thread + 1]!;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (timeline.start_ns[middle]! <= ns) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

// The interval that covers `ns`, or the nearest one within `slack_ns`, or -1.
export function intervalAt(timeline: Timeline, thread: number, ns: number,
                           slack_ns: number): number {
  const before = lastStartedBy(timeline, thread, ns);
  let best = -1;
  let distance = slack_ns;
  for (const i of [before, before + 1]) {
    if (i < timeline.first[thread]! || i >= timeline.first[thread + 1]!) continue;
    const away = Math.max(0, timeline.start_ns[i]! - ns, ns - end_ns(timeline, i));
    if (away > distance || (away === distance && best >= 0)) continue;
    best = i;
    distance = away;
  }
  return best;
}

export interface Shares { // of each pixel: 0 to 1
  blocked: Float32Array;
  runQueue: Float32Array;
  other: Float32Array; // waits that the filter leaves out
}

// Adds the time from `from` to `to`, in pixels, to the pixels that it covers.
function addTime(pixels: Float32Array, from: number, to: number): void {
  const start = Math.max(0, from);
  const end = Math.min(pixels.length, to);
  if (end <= start) return;
  const first = Math.floor(start);
  const last = Math.min(pixels.length - 1, Math.floor(end));
  if (first === last) {
    pixels[first]! += end - start;
    return;
  }
  pixels[first]! += first + 1 - start;
  pixels.fill(1, first + 1, last);
  pixels[last]! += end - last;
}

// What share of each of `width` pixels the thread was blocked and waiting for a CPU: exact at any
// zoom, also where a pixel covers many waits. `admits` says whether the filter lets one through.
export function sharesOf(timeline: Timeline, thread: number, span: Span, width: number,
                         admits: (interval: number) => boolean): Shares {
  const shares = {blocked: new Float32Array(width), runQueue: new Float32Array(width),
                  other: new Float32Array(width)};
  const scale = width / (span.to_ns - span.from_ns);
  const x = (ns: number) => (ns - span.from_ns) * scale;
  const end = timeline.first[thread + 1]!;
  let i = Math.max(timeline.first[thread]!, lastStartedBy(timeline, thread, span.from_ns));
  for (; i < end && timeline.start_ns[i]! < span.to_ns; ++i) {
    const start = x(timeline.start_ns[i]!);
    const woken = x(timeline.start_ns[i]! + timeline.blocked_ns[i]!);
    const over = x(end_ns(timeline, i));
    if (!admits(i)) {
      addTime(shares.other, start, over);
      continue;
    }
    addTime(shares.blocked, start, woken);
    addTime(shares.runQueue, woken, over);
  }
  return shares;
}

// No closer than this: a nanosecond should stay a nanosecond.
export const kLeastSpan_ns = 1000;

export function wholeSpan(timeline: Timeline): Span {
  return {from_ns: 0, to_ns: Math.max(timeline.window_ns, kLeastSpan_ns)};
}

// `span` moved and cut so that it lies in the window and is not too short.
export function fitted(timeline: Timeline, {from_ns, to_ns}: Span): Span {
  const whole = wholeSpan(timeline);
  const length = Math.min(whole.to_ns, Math.max(kLeastSpan_ns, to_ns - from_ns));
  const middle = (from_ns + to_ns) / 2;
  const from = Math.min(Math.max(0, middle - length / 2), whole.to_ns - length);
  return {from_ns: from, to_ns: from + length};
}

// `at_ns` stays where it is on the screen.
export function zoomed(timeline: Timeline, span: Span, factor: number, at_ns: number): Span {
  const length = (span.to_ns - span.from_ns) / factor;
  if (length >= timeline.window_ns) return wholeSpan(timeline);
  const from = at_ns - (at_ns - span.from_ns) / factor;
  return fitted(timeline, {from_ns: from, to_ns: from + length});
}

// `span` moved as little as it takes to show from `from_ns` to `to_ns`, or its start if it is long.
export function revealing(timeline: Timeline, span: Span, from_ns: number, to_ns: number): Span {
  const length = span.to_ns - span.from_ns;
  const margin = length / 20;
  let from = span.from_ns;
  if (to_ns > span.to_ns) from = to_ns + margin - length;
  if (from_ns < from) from = from_ns - margin;
  return fitted(timeline, {from_ns: from, to_ns: from + length});
}

// Round moments inside the span, at most `most` of them.
export function ticksOf(span: Span, most: number): number[] {
  const least = (span.to_ns - span.from_ns) / Math.max(1, most);
  let step = 10 ** Math.ceil(Math.log10(Math.max(1, least)));
  if (step / 5 >= least) step /= 5;
  else if (step / 2 >= least) step /= 2;
  const ticks = [];
  for (let k = Math.ceil(span.from_ns / step); k * step <= span.to_ns; ++k) ticks.push(k * step);
  return ticks;
}

// "1.25 s", "1.250004 s": a moment with as many digits as `step_ns` needs.
export function momentText(ns: number, step_ns: number): string {
  const [unit, name] = ns === 0 && step_ns >= 1e9 ? [1e9, 's'] as const
    : step_ns >= 1e5 ? [1e9, 's'] as const
    : step_ns >= 100 ? [1e6, 'ms'] as const : [1e3, 'µs'] as const;
  const digits = Math.max(0, Math.ceil(-Math.log10(Math.max(1, step_ns) / unit) - 1e-9));
  return `${(ns / unit).toFixed(digits)} ${name}`;
}
