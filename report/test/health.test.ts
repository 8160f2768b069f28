import assert from 'node:assert/strict';
import {test} from 'node:test';

import {checkDocument} from '../src/model/document.ts';
import {healthAdvice, healthSentence} from '../src/model/health.ts';
import {smallDocument} from './small_document.ts';

test('the sentence leaves out what did not happen', () => {
  const document = smallDocument();
  const sentence = healthSentence(document.stack_health!);
  assert.match(sentence, /^93\.?\d* ?% of .* have whole user stacks; 6\.?\d* ?% stacks that are cut\.$/);
});

test('advice comes for what takes time, with its remedy', () => {
  const document = smallDocument();
  const hint = {process: 0, runtime: 'Node.js', no_name_ns: 900, cut_ns: 0, remedy: '--flag'};
  document.stack_health!.hints = [hint, {...hint, no_name_ns: 1}];
  const none = {frames: 0, off_cpu_ns: 0};
  document.stack_health!.modules = [{
    module: 0, all: {frames: 2, off_cpu_ns: 100}, unwind_data: none, frame_pointer: none,
    cut: {frames: 1, off_cpu_ns: 100}, cut_remedy: 'build it with tables', no_name: none,
    no_name_remedy: '',
  }];
  const advice = healthAdvice(checkDocument(document));
  assert.deepEqual(advice.map(({remedy}) => remedy), ['--flag', 'build it with tables']);
  assert.match(advice[0]!.who, /\(Node\.js\)$/);
  assert.equal(advice[1]!.who, '/bin/app');
});

test('a document of an older Dwell has no word on it', () => {
  const document = smallDocument() as unknown as Record<string, unknown>;
  delete document.stack_health;
  const checked = checkDocument(document);
  assert.equal(checked.stack_health, null);
  assert.deepEqual(healthAdvice(checked), []);
});
