// Text for people: names from other processes made visible and bounded, and numbers with units.

// No name is shown longer than this; the tooltip says how long it really is.
export const kShownNameLength = 400;

// Control bytes, and the invisible characters that reorder or hide their neighbours (bidirectional
// marks, zero-width characters, line separators, lone surrogates), are shown as escapes: a function
// name must not be able to dress up as another one.
const kInvisible = new RegExp(
  '[\\u0000-\\u001f\\u007f-\\u009f\\u00ad\\u061c\\u200b-\\u200f\\u2028-\\u202e' +
  '\\u2060-\\u206f\\ufeff\\ufff9-\\ufffb]' +
  '|[\\ud800-\\udbff](?![\\udc00-\\udfff])|(?<![\\ud800-\\udbff])[\\udc00-\\udfff]', 'g');

function escapeOf(character: string): string {
  const code = character.charCodeAt(0);
  return code < 0x100 ? `\\x${code.toString(16).padStart(2, '0')}`
                      : `\\u${code.toString(16).padStart(4, '0')}`;
}

export function visibleName(name: string, limit = kShownNameLength): string {
  if (name === '') return '(no name)';
  const cut = name.length > limit;
  const shown = (cut ? name.slice(0, limit) : name).replace(kInvisible, escapeOf);
  return cut ? `${shown}… (${formatCount(name.length)} characters)` : shown;
}

// "/usr/lib/libc.so.6" -> "libc.so.6"
export function baseName(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1) || path;
}

function significant(value: number): string {
  return value < 10 ? value.toFixed(2) : value < 100 ? value.toFixed(1) : value.toFixed(0);
}

// "1.23 s", "12.3 ms", "450 µs", "17 ns", "2 min 05 s", "3 h 07 min"
export function formatDuration(ns: number): string {
  const sign = ns < 0 ? '-' : '';
  const n = Math.abs(ns);
  if (n < 1e3) return `${sign}${Math.round(n)} ns`;
  if (n < 999.5e3) return `${sign}${significant(n / 1e3)} µs`;
  if (n < 999.5e6) return `${sign}${significant(n / 1e6)} ms`;
  if (n < 120e9) return `${sign}${significant(n / 1e9)} s`;
  const seconds = Math.round(n / 1e9);
  const two = (x: number) => String(x).padStart(2, '0');
  if (seconds < 3600) return `${sign}${Math.floor(seconds / 60)} min ${two(seconds % 60)} s`;
  const minutes = Math.round(seconds / 60);
  return `${sign}${formatCount(Math.floor(minutes / 60))} h ${two(minutes % 60)} min`;
}

// 1234567 -> "1,234,567": the same on every machine, whatever its locale
export function formatCount(n: number): string {
  return String(Math.round(n)).replace(/\B(?=(\d{3})+(?!\d))/g, ',');
}

export function formatBytes(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`;
  if (bytes < 1024 ** 2) return `${significant(bytes / 1024)} KiB`;
  if (bytes < 1024 ** 3) return `${significant(bytes / 1024 ** 2)} MiB`;
  return `${significant(bytes / 1024 ** 3)} GiB`;
}

// "93 %", "4.2 %", "< 0.1 %", and "> 99.9 %" for what is not quite all: a share is never rounded to
// nothing or to everything.
export function formatShare(part: number, whole: number): string {
  if (whole <= 0 || part <= 0) return '0 %';
  const percent = (part / whole) * 100;
  if (percent < 0.1) return '< 0.1 %';
  if (percent < 9.95) return `${percent.toFixed(1)} %`;
  if (percent > 99.9 && part < whole) return '> 99.9 %';
  if (percent > 99.5 && part < whole) return `${percent.toFixed(1)} %`;
  return `${percent.toFixed(0)} %`;
}

export function plural(n: number, one: string, many = `${one}s`): string {
  return `${formatCount(n)} ${n === 1 ? one : many}`;
}
