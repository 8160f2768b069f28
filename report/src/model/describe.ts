// What a box of the flame graph is, in words: for its tooltip and for screen readers.
import type {FlameTree} from './flame_tree.ts';
import type {Model} from './model.ts';
import {formatCount, formatDuration, formatShare, visibleName} from './text.ts';

const kResolutionText: Record<string, string> = {
  'none': 'not resolved: shown as module and address',
  'symtab': 'symbol table (.symtab)',
  'dynsym': 'dynamic symbols (.dynsym): static functions may be misnamed',
  'minidebuginfo': 'MiniDebugInfo (.gnu_debugdata)',
  'debug-file': 'separate debug file',
  'perf-map': 'JIT map (/tmp/perf-PID.map)',
  'kallsyms': 'kernel symbols (/proc/kallsyms)',
  'plt': 'PLT stub',
  'gopclntab': 'Go line table (.gopclntab)',
  'placeholder': 'no address: a placeholder for what could not be recorded',
};

const kKindText: Record<string, string> = {
  'all': 'everything shown', 'user': 'user code', 'kernel': 'kernel code',
  'placeholder': 'placeholder', 'process': 'process', 'thread': 'thread', 'cause': 'cause',
  'class': 'class', 'running': 'on a CPU: no stacks are taken there',
  'lost': 'alive, but the probe had no state', 'filtered': 'kept out of the rows by a filter',
};

export interface Fact {
  name: string;
  value: string;
}
export interface Description {
  title: string;
  kind: string;
  facts: Fact[];
}

export function resolutionText(how: string): string {
  return kResolutionText[how] ?? visibleName(how, 40);
}

function frameFacts(model: Model, label: number): Fact[] {
  const {frames, modules} = model.document;
  const index = model.labels.frame[label]!;
  if (index < 0) return [];
  const frame = frames[index]!;
  if (frame.kind === 'placeholder') return [];
  const module = modules[frame.module]!;
  const facts = [{name: 'Module', value: `${visibleName(module.path, 200)} (${
    visibleName(module.kind, 30)})`}];
  if (frame.symbol && frame.symbol !== frame.name) {
    facts.push({name: 'Symbol', value: visibleName(frame.symbol, 200)});
  }
  facts.push({name: 'Name from', value: resolutionText(frame.how)});
  return facts;
}

export function describeNode(model: Model, tree: FlameTree, node: number,
                             zoom: number): Description {
  const label = tree.label[node]!;
  const total = tree.total[node]!;
  const facts: Fact[] = [
    {name: 'Time', value: `${formatDuration(total)}, ${
      formatShare(total, tree.total[0]!)} of all shown`}];
  if (zoom !== 0 && node !== zoom) {
    facts.push({name: 'Of the zoom', value: formatShare(total, tree.total[zoom]!)});
  }
  if (tree.count[node]! > 0) {
    facts.push({name: 'Intervals', value: `${formatCount(tree.count[node]!)}, mean ${
      formatDuration(total / tree.count[node]!)}, longest ${formatDuration(tree.max_ns[node]!)}`});
  }
  return {
    title: visibleName(model.labels.text[label]!),
    kind: kKindText[model.labels.kind[label]!]!,
    facts: [...facts, ...frameFacts(model, label)],
  };
}

export function describeRest(tree: FlameTree, parent: number, count: number): Description {
  const children = tree.childrenOf(parent);
  let ns = 0;
  for (let i = children.length - count; i < children.length; ++i) ns += tree.total[children[i]!]!;
  return {
    title: `${formatCount(count)} boxes too narrow to draw`,
    kind: 'zoom in to see them',
    facts: [{name: 'Time', value: `${formatDuration(ns)}, ${
      formatShare(ns, tree.total[0]!)} of all shown`}],
  };
}

export function spoken(description: Description): string {
  const facts = description.facts.map((fact) => `${fact.name}: ${fact.value}`);
  return `${description.title}, ${description.kind}. ${facts.join('. ')}`;
}
