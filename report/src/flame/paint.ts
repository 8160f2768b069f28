// Draws a layout on a canvas: the part that is scrolled into view, nothing else. Names go through
// fillText alone.
import type {Model} from '../model/model.ts';
import {baseName, visibleName} from '../model/text.ts';
import {fillOf, type Palette} from './colours.ts';
import type {Box, Layout} from './layout.ts';
import {fittingName} from './short_name.ts';

export const kRow_px = 20;
const kFont_px = 12;
const kPadding_px = 5;
export const kFont = `${kFont_px}px ui-monospace, "SFMono-Regular", Menlo, Consolas, ` +
  '"DejaVu Sans Mono", monospace';

export interface Picture {
  layout: Layout;
  rootAtBottom: boolean;
  width: number;
  height: number;     // of the canvas
  scrollTop: number;
  focused: Box | null;
  hovered: Box | null;
  matches: Uint8Array | null; // per label
}

// The top of a level in the content, in pixels.
export function topOf(depth: number, levelCount: number, rootAtBottom: boolean): number {
  return (rootAtBottom ? levelCount - 1 - depth : depth) * kRow_px;
}

export function depthAt(y: number, levelCount: number, rootAtBottom: boolean): number {
  const row = Math.floor(y / kRow_px);
  return rootAtBottom ? levelCount - 1 - row : row;
}

// Names and colours of labels, worked out once per label and palette.
export class LabelStyles {
  private readonly fills = new Map<number, string>();
  private readonly names = new Map<number, string>();
  constructor(private readonly model: Model, readonly palette: Palette) {}

  name(label: number): string {
    let name = this.names.get(label);
    if (name === undefined) {
      name = visibleName(this.model.labels.text[label]!);
      this.names.set(label, name);
    }
    return name;
  }

  fill(label: number): string {
    let fill = this.fills.get(label);
    if (fill === undefined) {
      const {labels, document} = this.model;
      const frame = labels.frame[label]!;
      const module = frame < 0 ? '' : document.modules[document.frames[frame]!.module]!.path;
      fill = fillOf(labels.kind[label]!, labels.text[label]!, baseName(module), this.palette);
      this.fills.set(label, fill);
    }
    return fill;
  }
}

export class Painter {
  private characterWidth = 0;
  constructor(private readonly context: CanvasRenderingContext2D, private readonly model: Model,
              private readonly styles: LabelStyles) {}

  paint(picture: Picture): void {
    const {context: c, styles: {palette}} = this;
    c.fillStyle = palette.background;
    c.fillRect(0, 0, picture.width, picture.height);
    c.font = kFont;
    c.textBaseline = 'middle';
    this.characterWidth = c.measureText('0').width;
    const {levels} = picture.layout;
    levels.forEach((level, depth) => {
      const y = topOf(depth, levels.length, picture.rootAtBottom) - picture.scrollTop;
      if (y + kRow_px < 0 || y > picture.height) return;
      for (const box of level) this.paintBox(picture, box, y);
    });
    this.outline(picture, picture.hovered, 1);
    this.outline(picture, picture.focused, 2);
  }

  private paintBox(picture: Picture, box: Box, y: number): void {
    const {context: c, styles} = this;
    const {label} = box.node;
    const width = Math.max(0.5, box.width - (box.width > 3 ? 1 : 0));
    const matched = box.rest === 0 && picture.matches?.[label] === 1;
    const faint = box.depth < picture.layout.zoom.depth;
    c.globalAlpha = faint || (picture.matches && !matched) ? 0.55 : 1;
    c.fillStyle = box.rest > 0 ? styles.palette.rest
      : matched ? styles.palette.match : styles.fill(label);
    c.fillRect(box.x, y, width, kRow_px - 1);
    const kind = this.model.labels.kind[label];
    if (box.rest === 0 && (kind === 'placeholder' || kind === 'lost' || kind === 'filtered')) {
      this.hatch(box.x, y, width);
    }
    c.globalAlpha = 1;
    if (box.width > 20) this.write(box, label, matched, y, width);
  }

  private write(box: Box, label: number, matched: boolean, y: number, width: number): void {
    const {context: c, styles: {palette}} = this;
    const columns = Math.floor((width - 2 * kPadding_px) / this.characterWidth);
    const more = `${box.rest} more`;
    const text = box.rest === 0 ? fittingName(this.styles.name(label), columns, this.isFrame(label))
      : more.length <= columns ? more : '';
    if (text === '') return;
    c.fillStyle = matched ? palette.matchText : box.rest > 0 ? palette.faintText : palette.text;
    // The width bound keeps wide (East Asian) characters inside of their box.
    c.fillText(text, box.x + kPadding_px, y + kRow_px / 2 + 0.5, width - 2 * kPadding_px);
  }

  private isFrame(label: number): boolean {
    const kind = this.model.labels.kind[label];
    return kind === 'user' || kind === 'kernel';
  }

  private hatch(x: number, y: number, width: number): void {
    const {context: c} = this;
    c.save();
    c.beginPath();
    c.rect(x, y, width, kRow_px - 1);
    c.clip();
    c.strokeStyle = this.styles.palette.hatch;
    c.lineWidth = 2;
    c.beginPath();
    const step = 9;
    const end = Math.min(x + width, this.context.canvas.width);
    for (let at = x - kRow_px; at < end; at += step) {
      c.moveTo(at, y + kRow_px);
      c.lineTo(at + kRow_px, y);
    }
    c.stroke();
    c.restore();
  }

  private outline(picture: Picture, box: Box | null, thickness: number): void {
    if (box === null) return;
    const {context: c} = this;
    const y = topOf(box.depth, picture.layout.levels.length, picture.rootAtBottom) -
      picture.scrollTop;
    c.strokeStyle = this.styles.palette.focus;
    c.lineWidth = thickness;
    const inset = thickness / 2;
    c.strokeRect(box.x + inset, y + inset, Math.max(1, box.width - 1 - thickness),
                 kRow_px - 1 - thickness);
  }
}
