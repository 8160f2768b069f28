// Where wall time went: the five phases that partition it, for one thread or for all of them, and
// the sentences about them.
import type {ProfileDocument, ThreadTimes} from './document.ts';
import type {Model} from './model.ts';
import {formatShare, plural, visibleName} from './text.ts';

export const kPhases = ['running', 'run-queue', 'blocked', 'censored', 'lost'] as const;
export type Phase = (typeof kPhases)[number];

export const kPhaseText: Record<Phase, {name: string; meaning: string}> = {
  'running': {name: 'Running', meaning: 'on a CPU'},
  'run-queue': {name: 'Waiting for a CPU', meaning: 'ready to run, in the run queue'},
  'blocked': {name: 'Blocked', meaning: 'asleep until something happens'},
  'censored': {
    name: 'Off-CPU across the edge',
    meaning: 'off-CPU intervals that began before the window or went on after it: ' +
      'only the part inside is counted',
  },
  'lost': {name: 'Lost', meaning: 'alive, but the probe had no state for it'},
};

export function phaseTimes(times: ThreadTimes): Record<Phase, number> {
  return {
    'running': times.running_ns,
    'run-queue': times.run_queue_ns,
    'blocked': times.blocked_ns,
    'censored': times.censored_run_queue_ns + times.censored_blocked_ns,
    'lost': times.lost_ns,
  };
}

export function threadCount(document: ProfileDocument): number {
  return document.threads.reduce((n, thread) => n + Math.max(1, thread.folded), 0);
}

// "4 threads of pgbench", "12 threads of 3 processes"
export function subject(document: ProfileDocument): string {
  const threads = plural(threadCount(document), 'thread');
  const used = new Set(document.threads.map((thread) => thread.process));
  const names = new Set([...used].map((p) => document.processes[p]!.name));
  if (names.size === 1) return `${threads} of ${visibleName([...names][0]!, 40)}`;
  return `${threads} of ${plural(used.size, 'process', 'processes')}`;
}

// The parts of the answer, largest first: blocked and run queue include what the edges cut.
export function answerParts(times: ThreadTimes): {share: string; word: string; phase: Phase}[] {
  const whole = times.alive_ns;
  const parts: {ns: number; word: string; phase: Phase}[] = [
    {ns: times.blocked_ns + times.censored_blocked_ns, word: 'blocked', phase: 'blocked'},
    {ns: times.running_ns, word: 'running', phase: 'running'},
    {ns: times.run_queue_ns + times.censored_run_queue_ns, word: 'waiting for a CPU',
     phase: 'run-queue'},
  ];
  if (times.lost_ns > 0) parts.push({ns: times.lost_ns, word: 'lost', phase: 'lost'});
  return parts.filter((part) => part.ns > 0)
    .sort((a, b) => b.ns - a.ns)
    .map(({ns, word, phase}) => ({share: formatShare(ns, whole), word, phase}));
}

// "futex 61 %, epoll_wait 30 %": the causes of most of the off-CPU time, at most three.
export function topCauses(model: Model): {cause: string; share: string}[] {
  const {rows, causes} = model;
  const ns = new Float64Array(causes.length);
  let whole = 0;
  for (let row = 0; row < rows.recorded; ++row) {
    ns[rows.cause[row]!]! += rows.total_ns[row]!;
    whole += rows.total_ns[row]!;
  }
  return Array.from(ns, (time, i) => ({cause: causes[i]!, ns: time}))
    .filter((c) => c.ns > 0)
    .sort((a, b) => b.ns - a.ns)
    .slice(0, 3)
    .map((c) => ({cause: visibleName(c.cause, 40), share: formatShare(c.ns, whole)}));
}
