// What the reader looks at: metric, grouping, filter, search, zoom, order of the tables. It is kept
// in the page's address (after #), so that a reload, a bookmark or a colleague sees the same view.
// The address comes from outside: whatever does not fit the document falls back to the default.
import {kEdges} from './edges.ts';
import type {Model} from './model.ts';
import {fitted, type Span} from './timeline.ts';

export const kMetrics = ['off-cpu', 'blocked', 'run-queue', 'wall'] as const;
export type Metric = (typeof kMetrics)[number];
export const kGroupings =
  ['process-thread', 'process-name', 'name', 'cause', 'class', 'none'] as const;
export type Grouping = (typeof kGroupings)[number];
export const kFacets = ['process', 'thread', 'cause', 'class', 'edge'] as const;
export type Facet = (typeof kFacets)[number];

// Numbers are indexes into the document's tables, or into Model.causes, Model.classes and kEdges.
export interface Choice {
  facet: Facet;
  value: number;
}
export interface Filter {
  only: Choice[]; // of one facet: any of them; of several facets: all facets must agree
  not: Choice[];
}
export interface Order {
  column: string;
  down: boolean;
}
export interface View {
  metric: Metric;
  grouping: Grouping;
  rootAtBottom: boolean;
  search: string;
  regex: boolean;
  filter: Filter;
  zoom: number[]; // labels from the root's child to the zoomed box
  threadOrder: Order;
  stackOrder: Order;
  span: Span | null; // of the timeline; null: all
}

export const kMaxChoices = 200;   // of a filter
const kMaxZoomDepth = 4096;
const kMaxSearchLength = 1000;

// With more threads than this a graph per thread is dust: those of one name are merged.
const kThreadsApart = 16;

export function defaultView(model: Model): View {
  const apart = model.document.threads.length <= kThreadsApart;
  return {
    metric: 'off-cpu', grouping: apart ? 'process-thread' : 'process-name', rootAtBottom: false,
    search: '', regex: false, filter: {only: [], not: []}, zoom: [],
    threadOrder: {column: 'alive', down: true}, stackOrder: {column: 'total', down: true},
    span: null,
  };
}

function writeChoices(choices: Choice[]): string {
  return choices.map(({facet, value}) => `${facet}.${value}`).join(',');
}

function readChoices(text: string | null, model: Model): Choice[] {
  const sizes: Record<Facet, number> = {
    process: model.document.processes.length, thread: model.document.threads.length,
    cause: model.causes.length, class: model.classes.length, edge: kEdges.length,
  };
  const choices: Choice[] = [];
  for (const part of (text ?? '').split(',', kMaxChoices)) {
    const match = /^(process|thread|cause|class|edge)\.(\d{1,9})$/.exec(part);
    if (!match) continue;
    const facet = match[1] as Facet;
    const value = Number(match[2]);
    if (value < sizes[facet]) choices.push({facet, value});
  }
  return choices;
}

function writeOrder(order: Order): string {
  return `${order.column}.${order.down ? 'down' : 'up'}`;
}

function readOrder(text: string | null, fallback: Order): Order {
  const match = /^([a-z-]{1,20})\.(down|up)$/.exec(text ?? '');
  return match ? {column: match[1]!, down: match[2] === 'down'} : fallback;
}

// Only what differs from the default is written.
export function writeView(view: View, base: View): string {
  const out = new URLSearchParams();
  if (view.metric !== base.metric) out.set('show', view.metric);
  if (view.grouping !== base.grouping) out.set('by', view.grouping);
  if (view.rootAtBottom) out.set('root', 'bottom');
  if (view.search !== '') out.set(view.regex ? 'regex' : 'search', view.search);
  if (view.filter.only.length > 0) out.set('only', writeChoices(view.filter.only));
  if (view.filter.not.length > 0) out.set('not', writeChoices(view.filter.not));
  if (view.zoom.length > 0) out.set('zoom', view.zoom.join('.'));
  if (writeOrder(view.threadOrder) !== writeOrder(base.threadOrder)) {
    out.set('threads', writeOrder(view.threadOrder));
  }
  if (writeOrder(view.stackOrder) !== writeOrder(base.stackOrder)) {
    out.set('stacks', writeOrder(view.stackOrder));
  }
  if (view.span) out.set('time', `${Math.round(view.span.from_ns)}-${Math.round(view.span.to_ns)}`);
  return out.toString();
}

function readSpan(text: string | null, model: Model): Span | null {
  const match = /^(\d{1,16})-(\d{1,16})$/.exec(text ?? '');
  if (!match || model.timeline === null) return null;
  return fitted(model.timeline, {from_ns: Number(match[1]), to_ns: Number(match[2])});
}

function oneOf<T extends string>(text: string | null, values: readonly T[], fallback: T): T {
  return values.find((value) => value === text) ?? fallback;
}

export function readView(hash: string, model: Model): View {
  const from = new URLSearchParams(hash.replace(/^#/, ''));
  const base = defaultView(model);
  const regex = from.get('regex');
  const zoom = (from.get('zoom') ?? '').split('.', kMaxZoomDepth)
    .filter((label) => /^\d{1,9}$/.test(label));
  return {
    metric: oneOf(from.get('show'), kMetrics, base.metric),
    grouping: oneOf(from.get('by'), kGroupings, base.grouping),
    rootAtBottom: from.get('root') === 'bottom',
    search: (regex ?? from.get('search') ?? '').slice(0, kMaxSearchLength),
    regex: regex !== null,
    filter: {only: readChoices(from.get('only'), model), not: readChoices(from.get('not'), model)},
    zoom: zoom.map(Number),
    threadOrder: readOrder(from.get('threads'), base.threadOrder),
    stackOrder: readOrder(from.get('stacks'), base.stackOrder),
    span: readSpan(from.get('time'), model),
  };
}

function same(a: Choice, b: Choice): boolean {
  return a.facet === b.facet && a.value === b.value;
}

// Adds the choice to `list` of the filter, or takes it away; it never stands in both lists.
export function toggled(filter: Filter, list: 'only' | 'not', choice: Choice): Filter {
  const without = (choices: Choice[]) => choices.filter((c) => !same(c, choice));
  const next: Filter = {only: without(filter.only), not: without(filter.not)};
  if (!chosen(filter, list, choice)) next[list] = [...next[list], choice].slice(-kMaxChoices);
  return next;
}

export function chosen(filter: Filter, list: 'only' | 'not', choice: Choice): boolean {
  return filter[list].some((c) => same(c, choice));
}
