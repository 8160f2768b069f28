import assert from 'node:assert/strict';
import {test} from 'node:test';
import {gzipSync} from 'node:zlib';
import {decodeDocument} from '../src/model/decode.ts';
import {checkDocument, DocumentError, type ProfileDocument} from '../src/model/document.ts';
import {explainEmpty} from '../src/model/empty.ts';
import {smallDocument, times} from './small_document.ts';

function blockOf(value: unknown): string {
  return gzipSync(Buffer.from(JSON.stringify(value))).toString('base64');
}

function refused(change: (document: ProfileDocument) => void): string {
  const document = smallDocument();
  change(document);
  try {
    checkDocument(document);
  } catch (error) {
    assert.ok(error instanceof DocumentError);
    assert.ok(error.remedy.length > 20, 'an error names a remedy');
    return error.message;
  }
  return 'accepted';
}

test('a document survives the way through gzip and base64', async () => {
  assert.deepEqual(await decodeDocument(`\n${blockOf(smallDocument())}\n`, 'gzip-base64'),
                   smallDocument());
});

test('a block that is no block is refused with a reason', async () => {
  const reason = (block: string, encoding = 'gzip-base64') =>
    decodeDocument(block, encoding).then(() => 'accepted', (error: Error) => error.message);
  assert.match(await reason('@DWELL_DATA@'), /carries no data/);
  assert.match(await reason(blockOf({}), 'zstd'), /does not know the encoding "zstd"/);
  assert.match(await reason('*'), /not base64/);
  const whole = blockOf(smallDocument());
  for (let cut = 4; cut < whole.length; cut += 64) {
    assert.match(await reason(whole.slice(0, cut)), /does not unpack/, `cut at ${cut}`);
  }
  assert.match(await reason(gzipSync(Buffer.from('{"a":')).toString('base64')), /not JSON/);
});

test('an index outside of its table is refused, whatever table', () => {
  assert.match(refused((d) => (d.frames[1]!.module = 2)), /frames\[1\]\.module is 2/);
  assert.match(refused((d) => (d.stacks[2]!.frames[0] = -1)), /a frame of stacks\[2\] is -1/);
  assert.match(refused((d) => (d.threads[0]!.process = 0.5)), /threads\[0\]\.process is 0\.5/);
  assert.match(refused((d) => (d.rows[3]!.thread = 3)), /rows\[3\]\.thread is 3/);
  assert.match(refused((d) => (d.rows[3]!.stack = 4)), /rows\[3\]\.stack is 4/);
  assert.match(refused((d) => d.unresolved.push({module: 9, frames: 1, reason: '', remedy: ''})),
               /unresolved\[0\]\.module is 9/);
  const hint = {runtime: '', no_name_ns: 0, cut_ns: 0, remedy: ''};
  assert.match(refused((d) => d.stack_health!.hints.push({...hint, process: 2})),
               /stack_health\.hints\[0\]\.process is 2/);
});

test('a field of the wrong type is refused', () => {
  const set = (object: object, field: string, value: unknown) =>
    Object.assign(object, {[field]: value});
  assert.match(refused((d) => set(d.rows[0]!, 'total_ns', 'x')),
               /rows\[0\]\.total_ns is not a number/);
  assert.match(refused((d) => set(d.frames[0]!, 'name', {})), /frames\[0\]\.name is not text/);
  assert.match(refused((d) => set(d.threads[0]!.times, 'lost_ns', null)), /times\.lost_ns/);
  assert.match(refused((d) => set(d, 'warnings', [1])), /"warnings" is not a list of texts/);
  assert.match(refused((d) => set(d, 'version', 2)), /document version 2; this page reads up to 1/);
  assert.equal(refused((d) => set(d, 'added_later', {})), 'accepted');
});

test('an empty profile is explained by what it says about itself', () => {
  const empty = (change: Partial<ProfileDocument>) =>
    explainEmpty({...smallDocument(), rows: [], ...change})!.why;
  const totals = (t: object) => ({...smallDocument().totals, threads: times(t)});
  assert.equal(explainEmpty(smallDocument()), null);
  assert.match(empty({threads: []}), /No thread of the target \(-p 1\)/);
  assert.match(empty({totals: totals({alive_ns: 9, running_ns: 9})}), /never left the CPU/);
  assert.match(empty({totals: totals({filtered_intervals: 4, filtered_ns: 5000})}),
               /All 4 off-CPU intervals were kept out .* \(5\.00 µs in all\)/);
});
