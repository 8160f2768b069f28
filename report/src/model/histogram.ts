// Histograms of interval durations with power-of-two buckets, as the document has them: bucket b
// counts durations of [2^(b+5), 2^(b+6)) ns; the first and the last bucket collect the rest.
import {formatCount, formatDuration, plural} from './text.ts';

export const kBuckets = 32;
const kShift = 5;

export type Histogram = Float64Array; // kBuckets counts

export function emptyHistogram(): Histogram {
  return new Float64Array(kBuckets);
}

export function bucketOf(lowerBound_ns: number): number {
  if (!(lowerBound_ns > 0)) return 0;
  return Math.min(kBuckets - 1, Math.max(0, Math.floor(Math.log2(lowerBound_ns)) - kShift));
}

export function lowerBound_ns(bucket: number): number {
  return bucket === 0 ? 0 : 2 ** (bucket + kShift);
}

export function upperBound_ns(bucket: number): number {
  return bucket === kBuckets - 1 ? Infinity : 2 ** (bucket + kShift + 1);
}

// Entries that are no pair of numbers are left out: the document may be anybody's.
export function addBuckets(into: Histogram, entries: readonly unknown[]): void {
  for (const entry of entries) {
    if (!Array.isArray(entry)) continue;
    const [lower, count] = entry as unknown[];
    if (typeof lower === 'number' && typeof count === 'number') into[bucketOf(lower)]! += count;
  }
}

export function countOf(histogram: Histogram): number {
  return histogram.reduce((sum, n) => sum + n, 0);
}

// The bucket that holds the given share of the durations, -1 if there are none.
export function quantileBucket(histogram: Histogram, share: number): number {
  const wanted = countOf(histogram) * share;
  let seen = 0;
  for (let b = 0; b < kBuckets; ++b) {
    seen += histogram[b]!;
    if (seen > 0 && seen >= wanted) return b;
  }
  return -1;
}

export function bucketText(bucket: number): string {
  const upper = upperBound_ns(bucket);
  if (bucket === 0) return `below ${formatDuration(upper)}`;
  if (upper === Infinity) return `${formatDuration(lowerBound_ns(bucket))} or longer`;
  return `${formatDuration(lowerBound_ns(bucket))} to ${formatDuration(upper)}`;
}

// For a screen reader and for the tooltip: the same facts as the bars.
export function histogramText(histogram: Histogram): string {
  const total = countOf(histogram);
  if (total === 0) return 'no durations recorded';
  const median = bucketText(quantileBucket(histogram, 0.5));
  const bars = Array.from(histogram, (n, b) => (n > 0 ? `${bucketText(b)}: ${formatCount(n)}` : ''))
    .filter((text) => text !== '');
  return `${plural(total, 'interval')}, half of them up to: ${median}. ${bars.join('; ')}`;
}

// The buckets worth drawing: from the first to the last that is not empty, and at least `least`.
export function drawnRange(histogram: Histogram, least: number): {from: number; to: number} {
  let from = histogram.findIndex((n) => n > 0);
  if (from < 0) return {from: 0, to: 0};
  let to = histogram.findLastIndex((n) => n > 0) + 1;
  while (to - from < least && (from > 0 || to < kBuckets)) {
    if (from > 0) --from;
    if (to - from < least && to < kBuckets) ++to;
  }
  return {from, to};
}
