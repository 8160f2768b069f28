// Which rows a filter lets through, what they are worth under a metric, and how much each choice of
// a facet holds.
import {kEdges} from './edges.ts';
import type {Model, RowColumns} from './model.ts';
import {kFacets, type Facet, type Filter, type Metric} from './view.ts';

export function metricColumn(rows: RowColumns, metric: Metric): Float64Array {
  switch (metric) {
    case 'off-cpu': return rows.total_ns;
    case 'blocked': return rows.blocked_ns;
    case 'run-queue': return rows.run_queue_ns;
    case 'wall': return rows.wall_ns;
  }
}

function facetSize(model: Model, facet: Facet): number {
  switch (facet) {
    case 'process': return model.document.processes.length;
    case 'thread': return model.document.threads.length;
    case 'cause': return model.causes.length;
    case 'class': return model.classes.length;
    case 'edge': return kEdges.length;
  }
}

// The choice of each row in a facet.
function facetColumn(model: Model, facet: Facet): (row: number) => number {
  const {rows, document: {threads}} = model;
  switch (facet) {
    case 'process': return (row) => threads[rows.thread[row]!]!.process;
    case 'thread': return (row) => rows.thread[row]!;
    case 'cause': return (row) => rows.cause[row]!;
    case 'class': return (row) => rows.class[row]!;
    case 'edge': return (row) => rows.edge[row]!;
  }
}

// One byte per choice: does the facet let it through?
function admitted(model: Model, facet: Facet, filter: Filter): Uint8Array | null {
  const only = filter.only.filter((c) => c.facet === facet);
  const not = filter.not.filter((c) => c.facet === facet);
  if (only.length + not.length === 0) return null;
  const admits = new Uint8Array(facetSize(model, facet)).fill(only.length > 0 ? 0 : 1);
  for (const {value} of only) admits[value] = 1;
  for (const {value} of not) admits[value] = 0;
  return admits;
}

// The numbers of the rows that pass and have time under the metric, in the order of their paths.
export function selectRows(model: Model, metric: Metric, filter: Filter): Int32Array {
  const values = metricColumn(model.rows, metric);
  const tests = kFacets.flatMap((facet) => {
    const admits = admitted(model, facet, filter);
    return admits ? [{admits, choiceOf: facetColumn(model, facet)}] : [];
  });
  const selected = new Int32Array(model.rows.length);
  let n = 0;
  for (const row of model.rowsByPath) {
    if (values[row]! > 0 && tests.every((t) => t.admits[t.choiceOf(row)])) selected[n++] = row;
  }
  return selected.subarray(0, n);
}

// Whether the filter lets a thread's bar be seen.
export function threadTest(model: Model, filter: Filter): (thread: number) => boolean {
  const {threads} = model.document;
  const byThread = admitted(model, 'thread', filter);
  const byProcess = admitted(model, 'process', filter);
  return (thread) => (byThread === null || byThread[thread] === 1) &&
    (byProcess === null || byProcess[threads[thread]!.process] === 1);
}

// Whether the filter lets a wait of the timeline through, whosever it is.
export function intervalTest(model: Model, filter: Filter): (interval: number) => boolean {
  const timeline = model.timeline!;
  const tests = (['cause', 'class', 'edge'] as const).flatMap((facet) => {
    const admits = admitted(model, facet, filter);
    return admits ? [{admits, choices: timeline[facet]}] : [];
  });
  return (interval) => tests.every((t) => t.admits[t.choices[interval]!] === 1);
}

export function sumOf(values: Float64Array, rows: Int32Array): number {
  let sum = 0;
  for (const row of rows) sum += values[row]!;
  return sum;
}

export interface FacetShare {
  value: number;
  ns: number;
}

// The choices of one facet, largest first, with the time they would hold if this facet had no
// filter. `selected` are the rows that the whole filter lets through.
export function facetShares(model: Model, metric: Metric, filter: Filter, selected: Int32Array,
                            facet: Facet): FacetShare[] {
  const others = {
    only: filter.only.filter((c) => c.facet !== facet),
    not: filter.not.filter((c) => c.facet !== facet),
  };
  const filtered = others.only.length + others.not.length < filter.only.length + filter.not.length;
  const values = metricColumn(model.rows, metric);
  const choiceOf = facetColumn(model, facet);
  const ns = new Float64Array(facetSize(model, facet));
  for (const row of filtered ? selectRows(model, metric, others) : selected) {
    ns[choiceOf(row)]! += values[row]!;
  }
  return Array.from(ns, (time, value) => ({value, ns: time}))
    .filter((share) => share.ns > 0)
    .sort((a, b) => b.ns - a.ns || a.value - b.value);
}
