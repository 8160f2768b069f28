// A histogram as bars: small in a table row, large with its axis below an opened stack.
import {
  bucketText, drawnRange, histogramText, lowerBound_ns, type Histogram,
} from '../model/histogram.ts';
import {formatCount, formatDuration} from '../model/text.ts';

const kSmallBars = 16;

// Heights grow with the square root: one long wait beside a thousand short ones stays visible.
function heightOf(count: number, most: number): number {
  return count === 0 ? 0 : Math.max(0.08, Math.sqrt(count / most));
}

export function SmallHistogram({histogram}: {histogram: Histogram}) {
  const text = histogramText(histogram);
  const {from, to} = drawnRange(histogram, kSmallBars);
  const most = Math.max(...histogram);
  let path = '';
  for (let b = from; b < to; ++b) {
    const height = heightOf(histogram[b]!, most) * 20;
    if (height > 0) path += `M${(b - from) * 5} 22v${-height.toFixed(1)}h4v${height.toFixed(1)}z`;
  }
  return (
    <svg class="histogram-small" role="img" aria-label={text}
         viewBox={`0 0 ${Math.max(1, to - from) * 5} 22`}
         width={Math.max(1, to - from) * 5} height="22">
      <title>{text}</title>
      <path d={path} />
    </svg>
  );
}

export function LargeHistogram({histogram}: {histogram: Histogram}) {
  const {from, to} = drawnRange(histogram, 6);
  const most = Math.max(...histogram);
  const bars = [];
  for (let b = from; b < to; ++b) bars.push(b);
  return (
    <div class="histogram-large" role="img" aria-label={histogramText(histogram)}>
      {bars.map((b) => (
        <div key={b} class="histogram-bar"
             title={`${bucketText(b)}: ${formatCount(histogram[b]!)}`}>
          <span class="histogram-count">{histogram[b]! > 0 ? formatCount(histogram[b]!) : ''}</span>
          <span class="histogram-fill"
                style={{height: `${(heightOf(histogram[b]!, most) * 44).toFixed(1)}px`}} />
          <span class="histogram-axis">{b === 0 ? '0' : formatDuration(lowerBound_ns(b))}</span>
        </div>
      ))}
    </div>
  );
}
