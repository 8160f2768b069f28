// What a box of the flame graph is, in words: for its tooltip and for screen readers.
import type {FlameNode, FlameTree} from './flame_tree.ts';
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
  'jitdump': 'JIT dump (jit-PID.dump)',
  'python': 'code object of the Python interpreter',
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
  if (frame.line) {
    facts.push({name: 'Source', value: visibleName(`${frame.file ?? ''}:${frame.line}`, 200)});
  }
  if (frame.inlined) facts.push({name: 'Inlined', value: 'into its caller'});
  facts.push({name: 'Name from', value: resolutionText(frame.how)});
  return facts;
}

export function describeNode(tree: FlameTree, node: FlameNode, zoom: FlameNode): Description {
  const {model, root} = tree;
  const {label, total} = node;
  const {count, max_ns} = tree.countOf(node);
  const facts: Fact[] = [
    {name: 'Time', value: `${formatDuration(total)}, ${
      formatShare(total, root.total)} of all shown`}];
  if (zoom !== root && node.depth > zoom.depth) {
    facts.push({name: 'Of the zoom', value: formatShare(total, zoom.total)});
  }
  if (count > 0) {
    facts.push({name: 'Intervals', value: `${formatCount(count)}, longest ${
      formatDuration(max_ns)}`});
  }
  return {
    title: visibleName(model.labels.text[label]!),
    kind: kKindText[model.labels.kind[label]!]!,
    facts: [...facts, ...frameFacts(model, label)],
  };
}

export function describeRest(tree: FlameTree, parent: FlameNode, count: number): Description {
  const children = tree.childrenOf(parent);
  let ns = 0;
  for (let i = children.length - count; i < children.length; ++i) ns += children[i]!.total;
  return {
    title: `${formatCount(count)} boxes too narrow to draw`,
    kind: 'zoom in to see them',
    facts: [{name: 'Time', value: `${formatDuration(ns)}, ${
      formatShare(ns, tree.root.total)} of all shown`}],
  };
}

export function spoken(description: Description): string {
  const facts = description.facts.map((fact) => `${fact.name}: ${fact.value}`);
  return `${description.title}, ${description.kind}. ${facts.join('. ')}`;
}
