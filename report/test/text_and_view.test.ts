import assert from 'node:assert/strict';
import {test} from 'node:test';
import {buildModel} from '../src/model/model.ts';
import {
  baseName, formatBytes, formatCount, formatDuration, formatShare, visibleName,
} from '../src/model/text.ts';
import {chosen, defaultView, readView, toggled, writeView, type View} from '../src/model/view.ts';
import {smallDocument} from './small_document.ts';

const model = buildModel(smallDocument());

test('control bytes and marks that reorder text become visible', () => {
  assert.equal(visibleName('a\u0000b\u001b[31m\n'), 'a\\x00b\\x1b[31m\\x0a');
  assert.equal(visibleName('x\u202eyz\u2066\u200b'), 'x\\u202eyz\\u2066\\u200b');
  assert.equal(visibleName('lone \ud800 and \udc00'), 'lone \\ud800 and \\udc00');
  const harmless = 'a pair \u{1f600} stays, so does \u0645\u0631\u062d\u0628\u0627';
  assert.equal(visibleName(harmless), harmless);
  assert.equal(visibleName('<b>&"'), '<b>&"', 'markup is text: nothing to escape');
  assert.equal(visibleName(''), '(no name)');
  assert.equal(visibleName('x'.repeat(1 << 20), 4), 'xxxx… (1,048,576 characters)');
});

test('durations have three significant digits and the right unit', () => {
  const shown = [0, 17, 999, 1000, 12_345, 999_499, 999_600, 1.5e9, 119.4e9, 125e9, 11_220e9]
    .map(formatDuration);
  assert.deepEqual(shown, ['0 ns', '17 ns', '999 ns', '1.00 µs', '12.3 µs', '999 µs', '1.00 ms',
                           '1.50 s', '119 s', '2 min 05 s', '3 h 07 min']);
  assert.equal(formatDuration(-4200), '-4.20 µs');
});

test('a share is never rounded to nothing or to everything', () => {
  assert.equal(formatShare(0, 10), '0 %');
  assert.equal(formatShare(1, 1e6), '< 0.1 %');
  assert.equal(formatShare(999_999, 1e6), '> 99.9 %');
  assert.equal(formatShare(997, 1000), '99.7 %');
  assert.equal(formatShare(1, 1), '100 %');
  assert.equal(formatShare(5, 0), '0 %');
  assert.equal(formatCount(1234567), '1,234,567');
  assert.equal(formatBytes(18_874_368), '18.0 MiB');
  assert.equal(baseName('/usr/lib/libc.so.6'), 'libc.so.6');
});

test('a view survives the way through the address', () => {
  const view: View = {
    metric: 'wall', grouping: 'cause', rootAtBottom: true, search: 'a&b=#%20', regex: true,
    filter: {only: [{facet: 'cause', value: 1}, {facet: 'thread', value: 2}],
             not: [{facet: 'process', value: 0}]},
    zoom: [3, 1, 2], threadOrder: {column: 'name', down: false},
    span: null, stackOrder: {column: 'max', down: true},
  };
  assert.deepEqual(readView(`#${writeView(view, defaultView(model))}`, model), view);
  assert.equal(writeView(defaultView(model), defaultView(model)), '');
});

test('an address that does not fit the document falls back to the default', () => {
  const base = defaultView(model);
  for (const hash of ['#show=%00', '#by=constructor', '#only=cause.99,thread.-1,x.1', '#zoom=a.b',
                      '#threads=__proto__', '#stacks=total', '#%E0%A4%A', '#=&&==']) {
    assert.deepEqual(readView(hash, model), base, hash);
  }
  assert.equal(readView(`#search=${'x'.repeat(5000)}`, model).search.length, 1000);
  const many = Array.from({length: 1000}, () => 'thread.1').join(',');
  assert.equal(readView(`#only=${many}`, model).filter.only.length, 200);
});

test('a choice is either kept or left out, never both', () => {
  const choice = {facet: 'cause' as const, value: 1};
  const kept = toggled({only: [], not: []}, 'only', choice);
  assert.ok(chosen(kept, 'only', choice));
  const left = toggled(kept, 'not', choice);
  assert.deepEqual(left, {only: [], not: [choice]});
  assert.deepEqual(toggled(left, 'not', choice), {only: [], not: []});
});

test('with many threads those of one name are shown together', () => {
  assert.equal(defaultView(model).grouping, 'process-thread');
  const crowd = smallDocument();
  while (crowd.threads.length < 40) crowd.threads.push(crowd.threads[1]!);
  assert.equal(defaultView(buildModel(crowd)).grouping, 'process-name');
});
