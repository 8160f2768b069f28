// The report in a real browser, from disk, as its reader uses it. Sums are compared with the
// document, never with constants.
//
//   node browser_test.mjs [--packages DIR] [--screenshots DIR]
import assert from 'node:assert/strict';
import {mkdirSync} from 'node:fs';
import {join} from 'node:path';
import {after, test} from 'node:test';
import {argument} from '../../report/packages.mjs';
import {Browser, kTemplate} from './browser.mjs';
import {
  emptyDocument, hostileDocument, kHostileNames, largeDocument, pageWith, smallDocument,
} from './sample.mjs';

const browser = await Browser.startOrSkip();
after(() => browser.stop());

const small = smallDocument();
const smallPage = browser.write(small);

// The sum of a field over the rows that pass.
function sum(document, field, passes = () => true) {
  return document.rows.reduce((ns, row) => ns + (passes(row) ? row[field] : 0), 0);
}

test('the header shows the document\'s totals by phase', async () => {
  const report = await browser.open(smallPage);
  const {threads} = small.totals;
  assert.equal(await report.state(), 'ready');
  const phases = {
    'running': threads.running_ns, 'run-queue': threads.run_queue_ns,
    'blocked': threads.blocked_ns, 'lost': threads.lost_ns,
    'censored': threads.censored_run_queue_ns + threads.censored_blocked_ns,
  };
  for (const [phase, ns] of Object.entries(phases)) {
    assert.equal(await report.ns(`.legend [data-phase=${phase}]`), ns, phase);
  }
  assert.match(await report.text('#answer'), /47 threads of 2 processes: \d+ % blocked/);
  assert.match(await report.text('#conservation'), /residual 0 ns/);
  assert.match(await report.text('#losses'), /stacks_full\s+37\s+412 ms/);
  assert.match(await report.text('#warnings'), /libaudit_hook\.so.*\n?.*debug package/s);
  await report.close();
});

test('every metric and every grouping shows the whole sum', async () => {
  const report = await browser.open(smallPage);
  const sums = {
    'off-cpu': small.totals.off_cpu_ns, 'blocked': small.totals.blocked_ns,
    'run-queue': small.totals.run_queue_ns,
    'wall': small.totals.threads.alive_ns - small.totals.residual_ns,
  };
  for (const [metric, ns] of Object.entries(sums)) {
    await report.metric(metric);
    for (const grouping of ['process-thread', 'process-name', 'name', 'cause', 'class', 'none']) {
      await report.group(grouping);
      assert.equal(await report.shown_ns(), ns, `${metric} by ${grouping}`);
    }
  }
  await report.close();
});

test('a click zooms in, the breadcrumb and Escape zoom out', async () => {
  const report = await browser.open(smallPage, '#by=none');
  const canvas = report.page.locator('.flame-canvas');
  await canvas.click({position: {x: 40, y: 30}});
  const first = await report.zoomedTo();
  assert.notEqual(first, 'all');
  await canvas.click({position: {x: 40, y: 70}});
  assert.notEqual(await report.zoomedTo(), first);
  await report.page.locator('.crumbs button').first().click();
  assert.equal(await report.zoomedTo(), 'all');
  await canvas.click({position: {x: 40, y: 30}});
  await report.keys('Escape');
  assert.equal(await report.zoomedTo(), 'all');
  await canvas.hover({position: {x: 40, y: 30}});
  assert.match(await report.text('.tooltip'), /of all shown/);
  await report.close();
});

test('the search counts each stack that matches once', async () => {
  const report = await browser.open(smallPage, '#by=none');
  const has = (pattern) => (row) => small.stacks[row.stack].frames
    .some((frame) => pattern.test(small.frames[frame].name));
  await report.search('FUTEX');
  assert.equal(await report.ns('#search-result'), sum(small, 'total_ns', has(/futex/i)));
  await report.page.click('#regex');
  await report.search('^__poll$|^fdatasync$');
  assert.equal(await report.ns('#search-result'),
               sum(small, 'total_ns', has(/^(__poll|fdatasync)$/)));
  assert.equal(await report.count('#stacks .grid-row'), 2);
  await report.search('(');
  assert.match(await report.text('#search-result'), /[Ii]nvalid regular expression/);
  await report.close();
});

test('one click leaves a cause out, and a reload keeps the view', async () => {
  const report = await browser.open(smallPage);
  await report.exclude('epoll_wait');
  await report.metric('blocked');
  await report.page.click('#flip');
  const left = sum(small, 'blocked_ns', (row) => row.cause !== 'epoll_wait');
  assert.equal(await report.shown_ns(), left);
  await report.page.reload();
  await report.page.waitForSelector('#report[data-state=ready]');
  assert.equal(await report.shown_ns(), left);
  assert.equal(await report.page.getAttribute('#flip', 'aria-pressed'), 'true');
  await report.exclude('the whole window');
  assert.equal(await report.shown_ns(), sum(small, 'blocked_ns', (row) =>
    row.cause !== 'epoll_wait' && row.censored !== 'both'));
  await report.page.click('#clear-filters');
  assert.equal(await report.shown_ns(), small.totals.blocked_ns);
  await report.close();
});

test('a click on a thread filters the graph and the stacks by it', async () => {
  const report = await browser.open(smallPage);
  const row = (name) => report.page.locator('#threads .grid-row', {hasText: name});
  const worker = small.threads.findIndex((thread) => thread.tid === 4243);
  await row('4243').click();
  assert.equal(await report.shown_ns(), sum(small, 'total_ns', (r) => r.thread === worker));
  assert.equal(await report.count('#stacks .grid-row'), 2);
  await row('4243').click();
  assert.equal(await report.shown_ns(), small.totals.off_cpu_ns);
  await row('jit-warmup').click(); // a thread without rows
  assert.match(await report.text('#flame-empty'), /nothing was recorded/);
  await report.metric('wall');
  assert.equal(await report.shown_ns(), 9_000_000_000);
  await row('parallel worker').scrollIntoViewIfNeeded();
  assert.match(await row('parallel worker').innerText(), /37 folded/);
  await report.close();
});

test('the table of stacks sorts, and a row opens to its frames', async () => {
  const report = await browser.open(smallPage);
  const {page} = report;
  await page.locator('#stacks').getByRole('button', {name: 'Count'}).click();
  await report.settled();
  const counts = await page.locator('#stacks .grid-row > :nth-child(6)').allInnerTexts();
  const numbers = counts.map((text) => Number(text.replaceAll(',', '')));
  assert.deepEqual(numbers, [...numbers].sort((a, b) => b - a));
  assert.equal(numbers.reduce((a, b) => a + b), sum(small, 'count'));
  const first = page.locator('#stacks .grid-row').first();
  await first.click();
  await report.settled();
  assert.equal(await first.getAttribute('aria-expanded'), 'true');
  const names = await first.locator('.frames li > bdi').allInnerTexts();
  assert.deepEqual([names[0], names.at(-1)], ['schedule_hrtimeout_range', 'start_thread']);
  assert.match(await first.getByRole('img').first().getAttribute('aria-label'),
               /32,000 intervals, half of them up to/);
  await page.locator('#stacks .grid-row', {hasText: 'overflow'}).click();
  assert.match(await report.text('#stacks .details >> nth=1'), /did not fit into a full map/);
  await report.close();
});

test('everything can be done with the keyboard alone', async () => {
  const report = await browser.open(smallPage);
  const tabbed = [];
  for (let i = 0; i < 80 && tabbed.at(-1) !== 'stacks'; ++i) {
    await report.keys('Tab');
    tabbed.push(await report.focused());
  }
  const stops = ['losses', 'warnings', 'grouping', 'search', 'regex', 'flip', 'flame', 'timeline',
                 'threads', 'stacks'];
  assert.deepEqual(tabbed.filter((id) => stops.includes(id)), stops, 'order of the Tab key');
  await report.keys('/');
  assert.equal(await report.focused(), 'search');
  await report.page.keyboard.type('fsync');
  assert.ok(await report.ns('#search-result') > 0);
  await report.keys('Escape', 'Escape', 'f', 'ArrowDown', 'ArrowDown', 'ArrowRight');
  assert.match(await report.spoken(), /^postgres \(\d+\), thread\. Time: /);
  await report.keys('Enter');
  assert.match(await report.zoomedTo(), /^postgres \(\d+\)$/);
  await report.keys('Escape', 'Escape', 's', 'ArrowDown', 'Enter');
  assert.equal(await report.count('#stacks .grid-row.open'), 1);
  await report.keys('t', 'End', 'Enter');
  assert.equal(await report.count('#threads .grid-row.selected'), 1);
  assert.notEqual(await report.shown_ns(), small.totals.off_cpu_ns);
  await report.keys('c', '2', 'g', '?');
  assert.equal(await report.count('dialog[open]'), 1);
  await report.keys('Escape');
  assert.equal(await report.count('dialog'), 0);
  assert.equal(await report.shown_ns(), small.totals.blocked_ns);
  await report.close();
});

test('the timeline shows single waits, for the keys and for the pointer', async () => {
  const report = await browser.open(smallPage);
  const span = () => report.page.locator('#timeline-span').evaluate(
    (element) => [Number(element.dataset.from), Number(element.dataset.to)]);
  const {window, intervals, threads} = small;
  assert.deepEqual(await span(), [0, window.length_ns]);
  const spoken = () => report.text('#timeline-spoken');
  await report.keys('l', 'ArrowDown', 'ArrowRight');
  assert.equal(await report.focused(), 'timeline');
  const told = await spoken();
  const wait = intervals.find((x) => told.startsWith(`${x.cause}, `) &&
    told.includes(`At: ${((x.start_ns - window.start_ns) / 1e6).toFixed(3)} ms`));
  assert.ok(wait, told);
  assert.ok(told.includes(`(${threads[wait.thread].tid})`), told);
  await report.keys('ArrowRight');
  assert.notEqual(await spoken(), told);
  await report.keys('ArrowLeft');
  assert.equal(await spoken(), told);
  await report.keys('+', '+');
  const [from, to] = await span();
  assert.equal(to - from, window.length_ns / 4);
  const at = wait.start_ns - window.start_ns;
  assert.ok(from <= at && at <= to, 'the wait stays in sight');
  await report.keys('Enter');
  assert.equal(await report.count('#threads .grid-row.selected'), 1);
  await report.page.reload();
  await report.settled();
  assert.deepEqual(await span(), [from, to], 'a reload keeps the span');
  await report.keys('l', 'Escape', 'c');
  assert.deepEqual(await span(), [0, window.length_ns]);

  const canvas = report.page.locator('.timeline-canvas');
  await canvas.scrollIntoViewIfNeeded();
  const box = await canvas.boundingBox();
  const x = (share) => box.x + 190 + share * (box.width - 190);
  await report.page.mouse.move(x(0.25), box.y + 60);
  await report.page.mouse.down();
  await report.page.mouse.move(x(0.5), box.y + 64, {steps: 4});
  await report.page.mouse.up();
  const [drawnFrom, drawnTo] = await span();
  assert.ok(Math.abs(drawnFrom / window.length_ns - 0.25) < 0.01, `from ${drawnFrom}`);
  assert.ok(Math.abs(drawnTo / window.length_ns - 0.5) < 0.01, `to ${drawnTo}`);
  await report.page.mouse.move(x(0.5), box.y + 26 + 24 * 3 + 12);
  await report.settled();
  assert.ok(await report.count('.tooltip') <= 1);
  await report.page.click('#timeline-all');
  assert.deepEqual(await span(), [0, window.length_ns]);
  await report.close();
});

test('a recording without a timeline has no such section, one that lost waits says so', async () => {
  const without = await browser.open(browser.write(emptyDocument()));
  assert.equal(await without.count('#timeline-title'), 0);
  await without.close();
  const lossy = structuredClone(small);
  lossy.losses.push({name: 'timeline_ring_full', meaning: 'x', count: 12, ns: 5, loss: true});
  const report = await browser.open(browser.write(lossy));
  assert.match(await report.text('#timeline-missing'), /12 more waits are missing/);
  await report.close();
});

test('hostile names are shown, never obeyed', async () => {
  const report = await browser.open(browser.write(hostileDocument()), '#show=wall');
  const {page} = report;
  const canvas = page.locator('.flame-canvas');
  for (const grouping of ['process-thread', 'name', 'cause', 'none']) {
    await report.group(grouping);
    for (let x = 10; x < 1300; x += 90) await canvas.hover({position: {x, y: 70}});
    await canvas.click({position: {x: 60, y: 50}});
  }
  for (const name of kHostileNames) await report.search(name);
  await report.search('');
  for (let i = 0; i < 6; ++i) {
    await page.locator('#stacks .grid-row:not(.open)').first().click();
    await report.settled();
  }
  await page.locator('#threads .grid-row').nth(1).click();
  await page.evaluate(() => scrollTo(0, document.body.scrollHeight));
  assert.equal(await report.count('script'), 1, 'only the page\'s own script');
  assert.equal(await report.count('img, iframe, a, object, [onload], [onerror]'), 0);
  const shown = await page.locator('body').innerText();
  assert.ok(shown.includes('<script>window.__pwned=1</script>'), 'markup is shown as text');
  assert.ok(!/[\u0000-\u0008\u001b\u202e\u2066]/.test(shown), 'no raw control or reordering marks');
  await report.close();
});

test('the page\'s policy refuses foreign scripts and every connection', async () => {
  const report = await browser.open(smallPage);
  const refused = await report.page.evaluate(async () => {
    const directives = [];
    document.addEventListener('securitypolicyviolation',
                              (event) => directives.push(event.effectiveDirective));
    const script = document.createElement('script');
    script.textContent = 'window.__pwned = 1';
    document.body.append(script);
    await fetch('http://127.0.0.1:9/').catch(() => {});
    await new Promise((done) => setTimeout(done, 100));
    return directives;
  });
  assert.deepEqual(refused.sort(), ['connect-src', 'script-src-elem']);
  assert.equal(await report.page.evaluate(() => window.__pwned), undefined);
  await report.page.close();
});

test('an empty profile says why it is empty and what to try', async () => {
  const report = await browser.open(browser.write(emptyDocument()));
  assert.match(await report.text('#empty'), /never left the CPU[^]*CPU profiler/);
  assert.match(await report.text('#loss-verdict'), /Nothing was lost/);
  await report.close();
});

test('a damaged or newer data block gives a sentence, not a blank page', async () => {
  const whole = pageWith(kTemplate, small);
  const data = /gzip-base64">([^<]+)</.exec(whole)[1];
  const withData = (text) => browser.writeText(whole.replace(data, () => text));
  const cases = [
    [browser.writeText(kTemplate), /carries no data/],
    [withData(data.slice(0, data.length / 2 & ~3)), /does not unpack/],
    [withData('%%%'), /not base64/],
    [withData(Buffer.from('plain text').toString('base64')), /does not unpack/],
    [browser.write('just text'), /not a JSON object/],
    [browser.write({...small, version: 2}), /document version 2; this page reads up to 1/],
    [browser.write({...small, rows: [{...small.rows[0], stack: 1e6}]}),
     /rows\[0\]\.stack is 1000000/],
    [browser.write({...small, frames: null}), /"frames" is missing/],
  ];
  for (const [path, message] of cases) {
    const report = await browser.open(path);
    assert.equal(await report.state(), 'failed');
    assert.match(await report.text('#failure'), message);
    await report.close();
  }
});

test('50,000 stacks load and answer quickly', async (t) => {
  const large = largeDocument();
  assert.equal(large.stacks.length, 50_000);
  const path = browser.write(large);
  const begin = performance.now();
  const report = await browser.open(path);
  const load_ms = performance.now() - begin;
  const steps = await report.page.evaluate(() => performance.getEntriesByType('measure')
    .map((entry) => `${entry.name} ${entry.duration.toFixed(0)} ms`).join(', '));
  t.diagnostic(`load: ${load_ms.toFixed(0)} ms (${steps})`);
  const key = (k) => `document.body.dispatchEvent(
    new KeyboardEvent('keydown', {key: '${k}', bubbles: true}))`;
  const actions = {
    'wall time': key('4'), 'off-CPU': key('1'), 'grouping': key('g'), 'upside down': key('i'),
    'search': `const e = document.getElementById('search'); e.value = 'flush';
               e.dispatchEvent(new InputEvent('input', {bubbles: true}))`,
    'exclude': `document.querySelectorAll('.chip .exclude')[14].click()`,
    'clear': `document.getElementById('clear-filters').click()`,
    'sort': `document.querySelectorAll('#stacks .grid-head button')[4].click()`,
    'scroll': `document.getElementById('stacks').scrollTop = 400000`,
  };
  for (const [name, action] of Object.entries(actions)) {
    t.diagnostic(`${name}: ${(await report.latency_ms(action)).toFixed(0)} ms`);
  }
  const rows = await report.count('#stacks .grid-row');
  assert.ok(rows > 5 && rows < 60, `${rows} rows in the page: only those in sight`);
  assert.ok(load_ms < 20_000, `loaded in ${load_ms} ms`);
  await report.search('');
  assert.equal(await report.shown_ns(), large.totals.off_cpu_ns);
  await report.close();
});

test('pictures for the eye', async (t) => {
  const directory = argument('--screenshots', join(browser.work, 'screenshots'));
  mkdirSync(directory, {recursive: true});
  const take = async (name, context, hash) => {
    const report = await browser.open(smallPage, hash, context);
    await report.page.waitForTimeout(200);
    const picture = await report.page.screenshot({path: join(directory, name), fullPage: true});
    assert.ok(picture.length > 50_000, `${name} is not blank`);
    t.diagnostic(join(directory, name));
    await report.close();
  };
  await take('light.png', browser.context, '');
  await browser.inDark((context) => take('dark.png', context, '#show=wall&by=name&search=futex'));
});
