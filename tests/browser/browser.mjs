// Chromium for the tests of the report: opens pages from disk and watches them. A page that asks
// for anything but its own file, opens a dialog, throws, or sets window.__pwned fails its test.
import assert from 'node:assert/strict';
import {existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync} from 'node:fs';
import {createRequire} from 'node:module';
import {tmpdir} from 'node:os';
import {dirname, join} from 'node:path';
import {fileURLToPath, pathToFileURL} from 'node:url';
import {packagesOrSkip, skip} from '../../report/packages.mjs';
import {pageWith} from './sample.mjs';

const kChromium = '/usr/bin/chromium';
const kArguments = [
  '--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run',
  '--disable-background-networking', '--disable-component-update', '--disable-sync',
];
const kReady_ms = 60_000;

const kHere = dirname(fileURLToPath(import.meta.url));
export const kTemplate = readFileSync(join(kHere, '../../report/dist/report.html'), 'utf8');

export class Browser {
  static async startOrSkip() {
    const packages = packagesOrSkip();
    if (!existsSync(kChromium)) skip(`${kChromium} is not installed`);
    const {chromium} = createRequire(join(packages, 'package.json'))('playwright-core');
    const work = mkdtempSync(join(tmpdir(), 'dwell-browser-test-'));
    const start = (colorScheme) => chromium.launchPersistentContext(
      mkdtempSync(join(work, 'profile-')),
      {executablePath: kChromium, headless: true, args: kArguments, colorScheme,
       viewport: {width: 1440, height: 1000}});
    return new Browser(work, start, await start('light'));
  }

  constructor(work, start, context) {
    Object.assign(this, {work, start, context, pages: 0});
  }

  // A file as the exporter would write it.
  write(document) {
    return this.writeText(pageWith(kTemplate, document));
  }

  writeText(text) {
    const path = join(this.work, `report-${++this.pages}.html`);
    writeFileSync(path, text);
    return path;
  }

  async open(path, hash = '', context = this.context) {
    const page = await context.newPage();
    const seen = {requests: [], trouble: []};
    page.on('request', (request) => seen.requests.push(request.url()));
    page.on('dialog', (dialog) => {
      seen.trouble.push(`dialog: ${dialog.message()}`);
      void dialog.dismiss();
    });
    page.on('pageerror', (error) => seen.trouble.push(`error: ${error.message}`));
    page.on('console', (message) => {
      if (message.type() === 'error') seen.trouble.push(`console: ${message.text()}`);
    });
    const url = pathToFileURL(path).href;
    await page.goto(url + hash);
    await page.waitForSelector('#report[data-state]', {timeout: kReady_ms});
    return new Report(page, seen, url);
  }

  async inDark(use) {
    const context = await this.start('dark');
    await use(context);
    await context.close();
  }

  async stop() {
    await this.context.close();
    rmSync(this.work, {recursive: true, force: true});
  }
}

// One open page, in the words of its reader.
export class Report {
  constructor(page, seen, url) {
    Object.assign(this, {page, seen, url});
  }

  // Two pictures later: whatever the last action changed is in the page.
  settled() {
    return this.page.evaluate(() => new Promise((done) =>
      requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 0)))));
  }

  state() {
    return this.page.locator('#report').getAttribute('data-state');
  }

  async text(selector) {
    await this.settled();
    return this.page.locator(selector).innerText();
  }

  async count(selector) {
    await this.settled();
    return this.page.locator(selector).count();
  }

  async ns(selector) {
    await this.settled();
    const text = await this.page.locator(selector).getAttribute('data-ns');
    assert.notEqual(text, null, `${selector} shows no time`);
    return Number(text);
  }

  shown_ns() {
    return this.ns('#flame-total');
  }

  async group(grouping) {
    await this.page.selectOption('#grouping', grouping);
  }

  async metric(name) {
    await this.page.locator(`#metric input[value="${name}"]`).check({force: true});
  }

  async search(text) {
    await this.page.fill('#search', text);
  }

  exclude(name) {
    return this.page.getByRole('button', {name: `leave ${name} out`, exact: true}).click();
  }

  zoomedTo() {
    return this.text('.crumbs [aria-current=location]');
  }

  async keys(...keys) {
    for (const key of keys) await this.page.keyboard.press(key);
  }

  async focused() {
    await this.settled();
    return this.page.evaluate(() => document.activeElement?.id ?? '');
  }

  // What the flame graph says about the box that has the keyboard.
  async spoken() {
    await this.settled();
    return this.page.locator('#flame-spoken').textContent();
  }

  // Time from an action until the next picture is on the screen.
  latency_ms(action) {
    return this.page.evaluate(async (body) => {
      const act = new Function(body);
      const begin = performance.now();
      act();
      await new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)));
      return performance.now() - begin;
    }, action);
  }

  async assertQuiet() {
    assert.deepEqual(this.seen.trouble, []);
    const foreign = this.seen.requests.filter((url) => url.split('#')[0] !== this.url);
    assert.deepEqual(foreign, [], 'the page asked for something');
    assert.equal(await this.page.evaluate(() => window.__pwned), undefined);
  }

  async close() {
    await this.assertQuiet();
    await this.page.close();
  }
}
