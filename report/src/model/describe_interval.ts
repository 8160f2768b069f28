// One wait of the timeline in words: for its card and for screen readers.
import type {Description, Fact} from './describe.ts';
import {threadTitle, type Model} from './model.ts';
import {formatCount, formatDuration, plural, visibleName} from './text.ts';
import {momentText} from './timeline.ts';

const kFramesShown = 6;
const kEdgeText: Record<string, string> = {
  left: 'began before the window', right: 'went on after the window',
  both: 'as long as the window, or longer',
};

function stackText(model: Model, stack: number): string {
  const {frames, stacks} = model.document;
  const list = stacks[stack]!.frames;
  const user = list.findIndex((frame) => frames[frame]!.kind !== 'kernel');
  const from = user < 0 ? 0 : user; // what the program did, not how the kernel sleeps
  const names = list.slice(from, from + kFramesShown)
    .map((frame) => visibleName(frames[frame]!.name, 60));
  const more = list.length - from - names.length;
  if (names.length === 0) return '';
  return names.join(' ← ') + (more > 0 ? ` ← ${formatCount(more)} more` : '');
}

// `interval` -1: the thread alone.
export function describeInterval(model: Model, thread: number, interval: number): Description {
  const {threads, intervals, window} = model.document;
  const title = threadTitle(threads[thread]!);
  if (interval < 0) {
    const timeline = model.timeline!;
    const count = timeline.first[thread + 1]! - timeline.first[thread]!;
    return {title, kind: 'thread', facts: [{name: 'Timeline', value: plural(count, 'wait')}]};
  }
  const wait = intervals[interval]!;
  const total_ns = wait.blocked_ns + wait.run_queue_ns;
  const facts: Fact[] = [
    {name: 'Thread', value: title},
    {name: 'At', value: `${momentText(wait.start_ns - window.start_ns, 1e3)} of the window`},
    {name: 'Blocked', value: formatDuration(wait.blocked_ns)},
    {name: 'CPU wait', value: formatDuration(wait.run_queue_ns)},
  ];
  const edge = kEdgeText[wait.censored];
  if (edge) facts.push({name: 'Edge', value: edge});
  else facts.push({name: 'Ended on', value: `CPU ${wait.cpu}`});
  const stack = stackText(model, wait.stack);
  if (stack !== '') facts.push({name: 'Stack', value: stack});
  return {title: `${visibleName(wait.cause, 60)}, ${formatDuration(total_ns)}`,
          kind: visibleName(wait.class, 40), facts};
}
