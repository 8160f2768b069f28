import assert from 'node:assert/strict';
import {test} from 'node:test';
import {checkDocument, type IntervalEntry} from '../src/model/document.ts';
import {describeInterval} from '../src/model/describe_interval.ts';
import {buildModel} from '../src/model/model.ts';
import {intervalTest, threadTest} from '../src/model/select.ts';
import {
  fitted, intervalAt, kLeastSpan_ns, lastStartedBy, momentText, revealing, sharesOf, ticksOf,
  wholeSpan, zoomed,
} from '../src/model/timeline.ts';
import {defaultView, readView, writeView} from '../src/model/view.ts';
import {smallDocument} from './small_document.ts';

const kStart_ns = 5_000_000;

function wait(thread: number, start_ns: number, blocked_ns: number, run_queue_ns: number,
              change: Partial<IntervalEntry> = {}): IntervalEntry {
  return {thread, stack: 0, class: 'interruptible', cause: 'read', censored: 'no', cpu: 1,
          start_ns: kStart_ns + start_ns, blocked_ns, run_queue_ns, ...change};
}

// Two threads with waits in a window of 100 microseconds.
function document(intervals = [
  wait(0, 10_000, 20_000, 10_000), wait(0, 50_000, 10_000, 0), wait(0, 80_000, 5_000, 5_000),
  wait(2, 0, 100_000, 0, {cause: 'futex', censored: 'both'}),
]) {
  const whole = smallDocument();
  whole.window = {...whole.window, start_ns: kStart_ns, end_ns: kStart_ns + 100_000,
                  length_ns: 100_000};
  whole.timeline = {min_ns: 1000};
  whole.intervals = intervals;
  return whole;
}
const model = buildModel(document());
const timeline = model.timeline!;
const whole = wholeSpan(timeline);
const all = () => true;

test('a document of an older Dwell has no timeline', () => {
  const {timeline: _t, intervals: _i, ...old} = smallDocument();
  const checked = checkDocument(old);
  assert.equal(checked.timeline, null);
  assert.equal(buildModel(checked).timeline, null);
});

test('intervals out of order or without a thread are refused', () => {
  assert.throws(() => checkDocument(document([wait(1, 5, 1, 0), wait(0, 5, 1, 0)])), /order/);
  assert.throws(() => checkDocument(document([wait(0, 5, 1, 0), wait(0, 4, 1, 0)])), /order/);
  assert.throws(() => checkDocument(document([wait(9, 5, 1, 0)])), /intervals\[0\]\.thread/);
  assert.ok(checkDocument(document()));
});

test('only threads with waits have a bar', () => {
  assert.deepEqual(timeline.threads, [0, 2]);
});

test('the shares of the pixels add up to the waits, at any zoom', () => {
  for (const width of [1, 7, 100, 1000]) {
    for (const [span, blocked, runQueue] of [
      [whole, 35_000, 15_000], [{from_ns: 20_000, to_ns: 55_000}, 15_000, 10_000],
      [{from_ns: 90_000, to_ns: 100_000}, 0, 0]] as const) {
      const shares = sharesOf(timeline, 0, span, width, all);
      const sum = (pixels: Float32Array) =>
        pixels.reduce((a, b) => a + b, 0) / width * (span.to_ns - span.from_ns);
      assert.ok(Math.abs(sum(shares.blocked) - blocked) < 1, `blocked in ${width} pixels`);
      assert.ok(Math.abs(sum(shares.runQueue) - runQueue) < 1, `run queue in ${width} pixels`);
      assert.ok(shares.blocked.every((share) => share >= 0 && share <= 1.000001));
    }
  }
});

test('a wait that the filter leaves out is shown as such, not as running', () => {
  const only = {only: [{facet: 'cause' as const, value: model.causes.indexOf('futex')}], not: []};
  const admits = intervalTest(model, only);
  const shares = sharesOf(timeline, 0, whole, 10, admits);
  assert.equal(shares.blocked.reduce((a, b) => a + b, 0), 0);
  assert.ok(Math.abs(shares.other.reduce((a, b) => a + b, 0) - 5) < 1e-5);
  assert.ok(admits(3));
});

test('filters of threads and processes choose the bars', () => {
  const other = threadTest(model, {only: [{facet: 'process', value: 1}], not: []});
  assert.deepEqual([0, 1, 2].filter(other), [2]);
  const without = threadTest(model, {only: [], not: [{facet: 'thread', value: 0}]});
  assert.deepEqual([0, 1, 2].filter(without), [1, 2]);
});

test('a moment finds its wait, or the nearest one', () => {
  assert.equal(intervalAt(timeline, 0, 45_000, 0), -1);
  assert.equal(intervalAt(timeline, 0, 40_000, 0), 0);
  assert.equal(intervalAt(timeline, 0, 48_000, 5000), 1);
  assert.equal(intervalAt(timeline, 0, 9_000, 500), -1);
  assert.equal(intervalAt(timeline, 1, 9_000, 500), -1);
  assert.equal(lastStartedBy(timeline, 0, 79_999), 1);
  assert.equal(lastStartedBy(timeline, 0, 5), -1);
});

test('zooming keeps the moment in place and the span in the window', () => {
  const near = zoomed(timeline, whole, 4, 60_000);
  assert.deepEqual(near, {from_ns: 45_000, to_ns: 70_000});
  assert.deepEqual(zoomed(timeline, near, 1 / 8, 60_000), whole);
  const deepest = zoomed(timeline, near, 1e9, 60_000);
  assert.equal(deepest.to_ns - deepest.from_ns, kLeastSpan_ns);
  assert.deepEqual(fitted(timeline, {from_ns: -50_000, to_ns: 0}), {from_ns: 0, to_ns: 50_000});
  assert.deepEqual(fitted(timeline, {from_ns: 90_000, to_ns: 120_000}),
                   {from_ns: 70_000, to_ns: 100_000});
});

test('revealing moves the span no further than it must', () => {
  const span = {from_ns: 40_000, to_ns: 60_000};
  assert.deepEqual(revealing(timeline, span, 45_000, 50_000), span);
  assert.deepEqual(revealing(timeline, span, 80_000, 90_000), {from_ns: 71_000, to_ns: 91_000});
  assert.deepEqual(revealing(timeline, span, 10_000, 15_000), {from_ns: 9_000, to_ns: 29_000});
});

test('ticks are round, few, and told with the digits they need', () => {
  assert.deepEqual(ticksOf({from_ns: 0, to_ns: 10e9}, 10), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
    .map((s) => s * 1e9));
  const ticks = ticksOf({from_ns: 1_234_567, to_ns: 1_334_567}, 6);
  assert.ok(ticks.length >= 2 && ticks.length <= 7, String(ticks));
  assert.ok(ticks.every((ns) => ns % 20_000 === 0), String(ticks));
  assert.equal(momentText(2_500_000_000, 500_000_000), '2.5 s');
  assert.equal(momentText(1_240_000, 20_000), '1.24 ms');
  assert.equal(momentText(1_500, 1), '1.500 µs');
});

test('a wait is told in words', () => {
  const {title, kind, facts} = describeInterval(model, 0, 0);
  assert.equal(title, 'read, 30.0 µs');
  assert.equal(kind, 'interruptible');
  const told = Object.fromEntries(facts.map((fact) => [fact.name, fact.value]));
  assert.equal(told['Blocked'], '20.0 µs');
  assert.equal(told['CPU wait'], '10.0 µs');
  assert.equal(told['Ended on'], 'CPU 1');
  assert.equal(told['Stack'], 'work ← main');
  assert.match(describeInterval(model, 2, 3).facts.map((f) => f.value).join(), /or longer/);
  assert.match(describeInterval(model, 0, -1).facts[0]!.value, /3 waits/);
});

test('the address keeps the span, and hostile ones are cut to the window', () => {
  const base = defaultView(model);
  const view = {...base, span: {from_ns: 20_000, to_ns: 50_000}};
  assert.deepEqual(readView(writeView(view, base), model).span, view.span);
  assert.equal(readView('time=1e9-2', model).span, null);
  assert.deepEqual(readView('time=9999999999999999-1', model).span,
                   {from_ns: 99_000, to_ns: 100_000});
});
