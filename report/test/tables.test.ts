import assert from 'node:assert/strict';
import {test} from 'node:test';
import {
  addBuckets, bucketOf, drawnRange, emptyHistogram, histogramText, kBuckets, lowerBound_ns,
  quantileBucket, upperBound_ns,
} from '../src/model/histogram.ts';
import {buildModel} from '../src/model/model.ts';
import {answerParts, phaseTimes, subject, topCauses} from '../src/model/phases.ts';
import {selectRows} from '../src/model/select.ts';
import {histogramOf, lineOf, sortedLines, StackLines, sumStacks} from '../src/model/stack_table.ts';
import {agreement, sortedThreads} from '../src/model/thread_table.ts';
import {offsetsOf, rowAt} from '../src/ui/virtual_grid.tsx';
import {smallDocument, thread, times} from './small_document.ts';

const model = buildModel(smallDocument());
const stacks = new StackLines(model);
const everything = selectRows(model, 'wall', {only: [], not: []});

test('rows of several threads with one stack, cause and class are one line', () => {
  const sums = sumStacks(stacks, everything);
  const lines = [...sortedLines(stacks, sums, {column: 'total', down: true})]
    .map((line) => lineOf(stacks, sums, line));
  assert.deepEqual(lines.map((line) => [line.stack, line.total_ns, line.count, line.max_ns]),
                   [[0, 800, 4, 300], [1, 300, 1, 300], [2, 300, 1, 300], [3, 100, 1, 100]]);
  assert.deepEqual(lines.map((line) => line.censored), [false, false, true, false]);
  assert.deepEqual(lines.map((line) => line.overflow), [false, false, false, true]);
  assert.equal(lines[0]!.mean_ns, 200);
  assert.equal(histogramOf(model, lines[0]!)[bucketOf(64)], 2);
});

test('a filter takes rows out of the sums and the histograms', () => {
  const one = selectRows(model, 'off-cpu', {only: [{facet: 'thread', value: 1}], not: []});
  const sums = sumStacks(stacks, one);
  const first = sortedLines(stacks, sums, {column: 'run-queue', down: true})[0]!;
  const line = lineOf(stacks, sums, first);
  assert.deepEqual([line.total_ns, line.count, line.rows.length], [300, 1, 1]);
  assert.equal(histogramOf(model, line)[bucketOf(64)], 1);
});

test('lines sort by any column, up and down', () => {
  const sums = sumStacks(stacks, everything);
  const order = (column: string, down: boolean) =>
    [...sortedLines(stacks, sums, {column, down})].map((line) => lineOf(stacks, sums, line).stack);
  assert.deepEqual(order('total', false), [3, 1, 2, 0]);
  assert.deepEqual(order('mean', true), [1, 2, 0, 3]);
  assert.deepEqual(order('cause', false), [1, 2, 3, 0]);
  assert.deepEqual(order('no such column', true), [0, 1, 2, 3]);
});

test('threads sort by any column', () => {
  const {document} = model;
  const order = (column: string, down: boolean) =>
    [...sortedThreads(document, {column, down})].map((i) => document.threads[i]!.tid);
  assert.deepEqual(order('alive', true), [1, 2, 9]);
  assert.deepEqual(order('running', false), [2, 1, 9]);
  assert.deepEqual(order('name', true), [2, 9, 1]);
  assert.deepEqual(order('process', true), [9, 1, 2]);
});

test('the kernel agrees within a millisecond or a hundredth of the time alive', () => {
  const verdict = (on_cpu_ns: number, stretch_ns = 1e9) => agreement(
    thread(0, 1, 'x', {alive_ns: 1e9, running_ns: 5e8},
           {schedstat: {on_cpu_ns, run_queue_ns: 0, stretch_ns}}));
  assert.equal(verdict(5e8 + 9e6).verdict, 'agrees');
  assert.equal(verdict(5e8 - 11e6).verdict, 'differs');
  assert.equal(verdict(5e8 - 11e6).running_ns, 11e6);
  assert.equal(verdict(5e8 + 11e6).verdict, 'differs');
  assert.equal(verdict(5e8 + 11e6, 1e9 + 2e6).verdict, 'agrees', 'outside the window it may run');
  assert.equal(verdict(5e8 - 11e6, 1e9 + 2e6).verdict, 'differs', 'but not less than in it');
  assert.equal(agreement(thread(0, 1, 'x', {})).verdict, 'none');
});

test('the five phases partition the time alive', () => {
  const t = times({alive_ns: 100, running_ns: 5, run_queue_ns: 2, blocked_ns: 80,
                   censored_blocked_ns: 9, censored_run_queue_ns: 1, lost_ns: 3});
  assert.deepEqual(phaseTimes(t),
                   {'running': 5, 'run-queue': 2, 'blocked': 80, 'censored': 10, 'lost': 3});
  assert.deepEqual(answerParts(t).map(({share, word}) => `${share} ${word}`),
                   ['89 % blocked', '5.0 % running', '3.0 % waiting for a CPU', '3.0 % lost']);
  assert.equal(subject(smallDocument()), '3 threads of 2 processes');
  assert.deepEqual(topCauses(model),
                   [{cause: 'read', share: '53 %'}, {cause: 'futex', share: '47 %'}]);
});

test('buckets are powers of two; the ends collect the rest', () => {
  assert.deepEqual([0, 1, 63, 64, 127, 128].map(bucketOf), [0, 0, 0, 1, 1, 2]);
  assert.equal(bucketOf(2 ** 50), kBuckets - 1);
  for (let b = 1; b < kBuckets; ++b) {
    assert.equal(bucketOf(lowerBound_ns(b)), b);
    assert.equal(upperBound_ns(b - 1), lowerBound_ns(b));
  }
  assert.equal(upperBound_ns(kBuckets - 1), Infinity);
});

test('histograms add up, know their median, and ignore what is no bucket', () => {
  const histogram = emptyHistogram();
  addBuckets(histogram, [[0, 1], [64, 2], [128, 4], 'junk', [null, 3], [5]]);
  addBuckets(histogram, [[128, 4]]);
  assert.deepEqual([...histogram.slice(0, 4)], [1, 2, 8, 0]);
  assert.equal(quantileBucket(histogram, 0.5), 2);
  assert.equal(quantileBucket(histogram, 0.1), 1);
  assert.equal(quantileBucket(emptyHistogram(), 0.5), -1);
  assert.equal(histogramText(histogram), '11 intervals, half of them up to: 128 ns to 256 ns. ' +
    'below 64 ns: 1; 64 ns to 128 ns: 2; 128 ns to 256 ns: 8');
  assert.deepEqual(drawnRange(histogram, 3), {from: 0, to: 3});
  const {from, to} = drawnRange(histogram, 16);
  assert.deepEqual([from, to], [0, 16]);
  assert.deepEqual(drawnRange(emptyHistogram(), 16), {from: 0, to: 0});
});

test('the row at a height is found among rows of different heights', () => {
  const offsets = offsetsOf(4, (row) => [10, 30, 10, 20][row]!);
  assert.deepEqual([...offsets], [0, 10, 40, 50, 70]);
  assert.deepEqual([0, 9, 10, 39, 40, 69].map((y) => rowAt(offsets, y)), [0, 0, 1, 1, 2, 3]);
});
