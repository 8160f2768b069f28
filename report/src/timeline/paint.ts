// Draws the bars of the timeline on a canvas: an axis, and for each thread in sight its name and
// what it did when. A pixel that covers many waits shows their shares as heights: blocked at the
// bottom, then waiting for a CPU, then what the filter leaves out; the rest is running.
import {threadTitle, type Model} from '../model/model.ts';
import {
  end_ns, momentText, sharesOf, ticksOf, type Shares, type Span, type Timeline,
} from '../model/timeline.ts';

export const kAxis_px = 26;
export const kRow_px = 24;
export const kNames_px = 190;
const kBar_px = 16;
const kTick_px = 120; // between two of them, at least
const kFont = '12px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif';

export interface BarColours {
  background: string;
  active: string; // the row with the focus
  text: string;
  faint: string;
  grid: string;
  blocked: string;
  runQueue: string;
  running: string;
  other: string;
  focus: string;
  range: string;
}
export const kLightBars: BarColours = {
  background: '#ffffff', active: '#eef2f5', text: '#14212c', faint: '#566572', grid: '#d9e0e7',
  blocked: '#3573c4', runQueue: '#e0940f', running: '#c4e5cf', other: '#c3ccd5', focus: '#0b1620',
  range: 'rgba(11, 98, 184, 0.20)',
};
export const kDarkBars: BarColours = {
  background: '#141b22', active: '#1c252e', text: '#e6edf3', faint: '#97a5b2', grid: '#2a3540',
  blocked: '#4d86d3', runQueue: '#dc9a2b', running: '#1d4a30', other: '#3a4652', focus: '#ffffff',
  range: 'rgba(108, 178, 255, 0.25)',
};

export interface Place { // of the focus
  row: number;
  interval: number; // -1: none
}

export interface BarPicture {
  rows: number[]; // threads, in the order of their rows
  span: Span;
  width: number;
  height: number;
  scrollTop: number;
  admits: (interval: number) => boolean;
  focus: Place | null;
  hovered: number;                // interval, -1: none
  range: [number, number] | null; // of x, while the pointer draws it
}

export function barWidth(width: number): number {
  return Math.max(1, Math.floor(width - kNames_px));
}

export function xOf(ns: number, span: Span, width: number): number {
  return kNames_px + (ns - span.from_ns) / (span.to_ns - span.from_ns) * barWidth(width);
}

export function nsAt(x: number, span: Span, width: number): number {
  return span.from_ns + (x - kNames_px) / barWidth(width) * (span.to_ns - span.from_ns);
}

// Heights of one pixel in the bar. What is there at all is seen.
function heightsAt({blocked, runQueue, other}: Shares, pixel: number): [number, number, number] {
  let left = kBar_px;
  const height = (share: number) => {
    const wanted = share > 0 ? Math.max(1, Math.round(share * kBar_px)) : 0;
    const given = Math.min(left, wanted);
    left -= given;
    return given;
  };
  return [height(blocked[pixel]!), height(runQueue[pixel]!), height(other[pixel]!)];
}

export class BarPainter {
  constructor(private readonly c: CanvasRenderingContext2D, private readonly model: Model,
              private readonly colours: BarColours) {}

  paint(picture: BarPicture): void {
    const {c, colours} = this;
    c.fillStyle = colours.background;
    c.fillRect(0, 0, picture.width, picture.height);
    c.font = kFont;
    c.textBaseline = 'middle';
    const first = Math.max(0, Math.floor(picture.scrollTop / kRow_px));
    for (let row = first; row < picture.rows.length; ++row) {
      const y = kAxis_px + row * kRow_px - picture.scrollTop;
      if (y > picture.height) break;
      this.paintRow(picture, row, y);
    }
    this.paintAxis(picture);
    if (picture.range) {
      const [from, to] = picture.range;
      c.fillStyle = colours.range;
      c.fillRect(Math.min(from, to), kAxis_px, Math.abs(to - from), picture.height - kAxis_px);
    }
  }

  private paintAxis({span, width, height}: BarPicture): void {
    const {c, colours} = this;
    c.fillStyle = colours.background;
    c.fillRect(0, 0, width, kAxis_px);
    const ticks = ticksOf(span, barWidth(width) / kTick_px);
    const step = ticks.length > 1 ? ticks[1]! - ticks[0]! : span.to_ns - span.from_ns;
    for (const ns of ticks) {
      const x = Math.round(xOf(ns, span, width)) + 0.5;
      c.fillStyle = colours.grid;
      c.fillRect(x - 0.5, kAxis_px - 6, 1, height - kAxis_px + 6);
      c.fillStyle = colours.faint;
      if (x + 60 < width) c.fillText(momentText(ns, step), x + 4, kAxis_px / 2);
    }
    c.fillStyle = colours.faint;
    c.fillText('Thread', 10, kAxis_px / 2);
    c.fillStyle = colours.grid;
    c.fillRect(0, kAxis_px - 1, width, 1);
  }

  private paintRow(picture: BarPicture, row: number, y: number): void {
    const {c, colours, model} = this;
    const thread = picture.rows[row]!;
    if (picture.focus?.row === row) {
      c.fillStyle = colours.active;
      c.fillRect(0, y, picture.width, kRow_px);
    }
    c.save();
    c.beginPath();
    c.rect(0, y, kNames_px - 8, kRow_px);
    c.clip();
    c.fillStyle = colours.text;
    c.fillText(threadTitle(model.document.threads[thread]!), 10, y + kRow_px / 2 + 0.5);
    c.restore();
    this.paintBar(picture, thread, y + (kRow_px - kBar_px) / 2);
    for (const interval of [picture.hovered, picture.focus?.interval ?? -1]) {
      this.outline(picture, thread, interval, y + (kRow_px - kBar_px) / 2);
    }
  }

  private paintBar({span, width, admits}: BarPicture, thread: number, y: number): void {
    const {c, colours, model} = this;
    const {window, threads} = model.document;
    const {birth_ns, end_ns: death_ns} = threads[thread]!;
    const clamp = (x: number) => Math.min(width, Math.max(kNames_px, x));
    const born = clamp(xOf(birth_ns - window.start_ns, span, width));
    const gone = clamp(xOf(death_ns - window.start_ns, span, width));
    c.fillStyle = colours.running;
    c.fillRect(born, y, gone - born, kBar_px);
    const pixels = barWidth(width);
    const shares = sharesOf(model.timeline!, thread, span, pixels, admits);
    let from = 0;
    let heights = heightsAt(shares, 0);
    for (let pixel = 1; pixel <= pixels; ++pixel) { // equal neighbours in one go
      const next = pixel < pixels ? heightsAt(shares, pixel) : [-1, -1, -1] as const;
      if (next.every((height, i) => height === heights[i])) continue;
      let bottom = y + kBar_px;
      [colours.blocked, colours.runQueue, colours.other].forEach((colour, i) => {
        bottom -= heights[i]!;
        c.fillStyle = colour;
        if (heights[i]! > 0) c.fillRect(kNames_px + from, bottom, pixel - from, heights[i]!);
      });
      from = pixel;
      heights = [next[0], next[1], next[2]];
    }
  }

  private outline({span, width}: BarPicture, thread: number, interval: number, y: number): void {
    const {c, model} = this;
    const timeline: Timeline = model.timeline!;
    if (interval < timeline.first[thread]! || interval >= timeline.first[thread + 1]!) return;
    const from = xOf(timeline.start_ns[interval]!, span, width);
    const to = xOf(end_ns(timeline, interval), span, width);
    if (to < kNames_px || from > width) return;
    const left = Math.max(kNames_px, from);
    c.strokeStyle = this.colours.focus;
    c.lineWidth = 2;
    c.strokeRect(left - 1, y - 2, Math.max(3, Math.min(width, to) - left + 2), kBar_px + 4);
  }
}
