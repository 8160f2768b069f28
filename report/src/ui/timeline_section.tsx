// The timeline with its heading: how much of it is seen, and ways to see more or less.
import {useMemo} from 'preact/hooks';
import {intervalTest, threadTest} from '../model/select.ts';
import {sortedThreads} from '../model/thread_table.ts';
import {formatCount, formatDuration, plural} from '../model/text.ts';
import {wholeSpan, zoomed, type Span, type Timeline} from '../model/timeline.ts';
import {TimelineBars} from './timeline_bars.tsx';
import type {ViewProps} from './toolbar.tsx';

const kZoomStep = 2;

function Legend({timeline}: {timeline: Timeline}) {
  const gaps = timeline.min_ns > 0
    ? `running, or waits under ${formatDuration(timeline.min_ns)}` : 'running';
  return (
    <ul class="flame-legend" aria-label="Colours">
      <li><span class="swatch blocked" />blocked</li>
      <li><span class="swatch run-queue" />waiting for a CPU</li>
      <li><span class="swatch gap" />{gaps}</li>
    </ul>
  );
}

function Buttons({timeline, span, show}: {timeline: Timeline; span: Span;
                                          show: (span: Span | null) => void}) {
  const middle = (span.from_ns + span.to_ns) / 2;
  const isWhole = span.to_ns - span.from_ns >= wholeSpan(timeline).to_ns;
  return (
    <span class="timeline-buttons">
      <button type="button" class="quiet" id="timeline-in" aria-label="zoom the timeline in"
              onClick={() => show(zoomed(timeline, span, kZoomStep, middle))}>+</button>
      <button type="button" class="quiet" id="timeline-out" aria-label="zoom the timeline out"
              disabled={isWhole}
              onClick={() => show(zoomed(timeline, span, 1 / kZoomStep, middle))}>−</button>
      <button type="button" class="quiet" id="timeline-all" disabled={isWhole}
              onClick={() => show(null)}>Show all</button>
    </span>
  );
}

export function TimelineSection(props: ViewProps & {timeline: Timeline}) {
  const {model, view, update, timeline} = props;
  const span = view.span ?? wholeSpan(timeline);
  const rows = useMemo(() => {
    const shows = threadTest(model, view.filter);
    const has = new Set(timeline.threads);
    return [...sortedThreads(model.document, view.threadOrder)]
      .filter((thread) => has.has(thread) && shows(thread));
  }, [model, view.filter, view.threadOrder.column, view.threadOrder.down]);
  const admits = useMemo(() => intervalTest(model, view.filter), [model, view.filter]);
  const show = (next: Span | null) => update({span: next});
  const count = timeline.start_ns.length;
  const least = timeline.min_ns > 0 ? ` of ${formatDuration(timeline.min_ns)} and more` : '';
  return (
    <section class="section" aria-labelledby="timeline-title">
      <div class="section-head">
        <h2 id="timeline-title">Timeline <small>{plural(count, 'wait')}{least};{' '}
          <span id="timeline-span" data-from={Math.round(span.from_ns)}
                data-to={Math.round(span.to_ns)}>
            {formatDuration(span.to_ns - span.from_ns)} shown</span></small></h2>
        <Legend timeline={timeline} />
        <Buttons timeline={timeline} span={span} show={show} />
      </div>
      {timeline.missing > 0 && <p class="timeline-missing" id="timeline-missing">
        {formatCount(timeline.missing)} more {timeline.missing === 1 ? 'wait is' : 'waits are'}{' '}
        missing here, where they look like running: see the losses. The sums have them.</p>}
      {rows.length > 0
        ? <TimelineBars {...props} rows={rows} span={span} admits={admits} show={show} />
        : <p class="nothing" id="timeline-empty">No thread has a wait here: none was long enough, or
            the filters leave none over.</p>}
    </section>
  );
}
