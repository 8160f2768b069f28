// What the page says about the quality of user stacks: one sentence, and a line for each thing that
// is worth doing.
import type {ProfileDocument, StackHealth} from './document.ts';
import {formatDuration, formatShare, plural} from './text.ts';

const kWorthTelling = 200; // one part in so many of the time
const kAdviceMax = 8;

export interface Advice {
  who: string; // hostile
  what: string;
  remedy: string; // holds the path of a file: hostile
}

export function healthSentence(health: StackHealth): string {
  const all = health.off_cpu_ns;
  const parts = [
    `${formatShare(health.whole_ns, all)} of ${formatDuration(all)} have whole user stacks`,
    health.cut_ns > 0 ? `${formatShare(health.cut_ns, all)} stacks that are cut` : '',
    health.lost_ns > 0 ? `${formatShare(health.lost_ns, all)} lost stacks` : '',
    health.by_pointer_ns > 0
      ? `${formatShare(health.by_pointer_ns, all)} were walked by frame pointer in part` : '',
    health.no_name_ns > 0
      ? `${formatShare(health.no_name_ns, all)} pass through code without names` : '',
  ];
  return `${parts.filter((part) => part !== '').join('; ')}.`;
}

export function healthAdvice(document: ProfileDocument): Advice[] {
  const health = document.stack_health;
  if (health === null) return [];
  const worth = (time_ns: number) => time_ns > health.off_cpu_ns / kWorthTelling;
  const advice: Advice[] = [];
  for (const hint of health.hints) {
    if (!worth(hint.no_name_ns + hint.cut_ns)) continue;
    const process = document.processes[hint.process]!;
    const what = hint.no_name_ns > 0
      ? `${formatDuration(hint.no_name_ns)} through code of its runtime that has no name`
      : `${formatDuration(hint.cut_ns)} cut in code made at run time`;
    advice.push({
      who: `${process.name} [${process.pid}]${hint.runtime === '' ? '' : ` (${hint.runtime})`}`,
      what, remedy: hint.remedy,
    });
  }
  for (const entry of health.modules) {
    if (entry.cut_remedy === '' || !worth(entry.cut.off_cpu_ns)) continue;
    advice.push({
      who: document.modules[entry.module]!.path,
      what: `${formatDuration(entry.cut.off_cpu_ns)} cut at ${plural(entry.cut.frames, 'frame')}`,
      remedy: entry.cut_remedy,
    });
  }
  return advice.slice(0, kAdviceMax);
}
