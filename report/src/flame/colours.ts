// The colours of the flame graph. Hue says what a box is: user code blue to teal (by module),
// kernel code amber, placeholders grey with hatching, groups slate, running time green, lost time
// red. A match of the search is magenta. Text on every fill has a contrast of at least 4.5.
import type {LabelKind} from '../model/labels.ts';

export interface Palette {
  dark: boolean;
  background: string;
  text: string;
  faintText: string;
  focus: string;
  rest: string;
  hatch: string;
  match: string;
  matchText: string;
}

export const kLight: Palette = {
  dark: false, background: '#ffffff', text: '#10202e', faintText: '#5b6875', focus: '#0b1620',
  rest: '#e3e8ed', hatch: 'rgba(60, 72, 84, 0.22)', match: '#e23fd0', matchText: '#1c0019',
};
export const kDark: Palette = {
  dark: true, background: '#141b22', text: '#eef4f9', faintText: '#93a1ae', focus: '#ffffff',
  rest: '#26303a', hatch: 'rgba(200, 212, 224, 0.20)', match: '#ff5de9', matchText: '#25001f',
};

// A number from 0 to 1 that depends on the text alone.
export function shadeOf(text: string): number {
  let h = 0x811c9dc5;
  for (let i = 0; i < Math.min(text.length, 256); ++i) {
    h = Math.imul(h ^ text.charCodeAt(i), 0x01000193);
  }
  h ^= h >>> 15;
  return ((h >>> 0) % 1000) / 999;
}

function hsl(hue: number, saturation: number, lightness: number): string {
  return `hsl(${hue.toFixed(0)} ${saturation.toFixed(0)}% ${lightness.toFixed(0)}%)`;
}

export function fillOf(kind: LabelKind, name: string, module: string, palette: Palette): string {
  const shade = shadeOf(name);
  const {dark} = palette;
  switch (kind) {
    case 'user': {
      const hue = 178 + 50 * shadeOf(module);
      return dark ? hsl(hue, 44, 31 + 7 * shade) : hsl(hue, 62, 74 + 8 * shade);
    }
    case 'kernel':
      return dark ? hsl(28 + 10 * shade, 55, 29 + 6 * shade)
        : hsl(30 + 12 * shade, 82, 74 + 7 * shade);
    case 'placeholder': return dark ? hsl(215, 8, 29) : hsl(215, 12, 86);
    case 'running': return dark ? hsl(145, 38, 27) : hsl(142, 45, 74);
    case 'lost': return dark ? hsl(0, 52, 34) : hsl(0, 78, 82);
    case 'filtered': return dark ? hsl(265, 20, 32) : hsl(265, 40, 87);
    case 'all':
    case 'process': return dark ? hsl(215, 16, 25) : hsl(214, 22, 84);
    case 'thread':
    case 'cause':
    case 'class': return dark ? hsl(215, 15, 30) : hsl(214, 24, 89);
  }
}
