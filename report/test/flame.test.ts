import assert from 'node:assert/strict';
import {test} from 'node:test';
import {boxAt, layOut, neighbour} from '../src/flame/layout.ts';
import {fittingName} from '../src/flame/short_name.ts';
import {describeNode} from '../src/model/describe.ts';
import {FlameTree, type FlameNode} from '../src/model/flame_tree.ts';
import {kEdges} from '../src/model/edges.ts';
import {buildModel} from '../src/model/model.ts';
import {matchedRows, searchLabels} from '../src/model/search.ts';
import {facetShares, metricColumn, selectRows, sumOf} from '../src/model/select.ts';
import {kGroupings, kMetrics, type Filter, type Grouping, type Metric} from '../src/model/view.ts';
import {smallDocument} from './small_document.ts';

const kEverything: Filter = {only: [], not: []};
const model = buildModel(smallDocument());

function graph(metric: Metric, grouping: Grouping, filter = kEverything): FlameTree {
  return new FlameTree(model, metric, grouping, selectRows(model, metric, filter));
}

// "main 1400, main/work 1100, ...": every box with its total, largest first below each parent.
function boxes(tree: FlameTree): string[] {
  const out: string[] = [];
  const visit = (node: FlameNode, path: string) => {
    for (const child of tree.childrenOf(node)) {
      const here = `${path}${path && '/'}${model.labels.text[child.label]}`;
      out.push(`${here} ${child.total}`);
      visit(child, here);
    }
  };
  visit(tree.root, '');
  return out;
}

test('stacks merge by name, largest first, kernel frames below user frames', () => {
  assert.deepEqual(boxes(graph('off-cpu', 'none')), [
    'main 1400', 'main/work 1100', 'main/work/read 800', 'main/work/lock 300', 'main/idle 300',
    '[root frames missing: deeper than the limit] 100',
    '[root frames missing: deeper than the limit]/lock 100',
  ]);
});

test('groups stand above the stacks', () => {
  const tops = (grouping: Grouping) =>
    boxes(graph('off-cpu', grouping)).filter((box) => !box.includes('main') && !box.includes('['));
  assert.deepEqual(tops('process-thread'), ['app (1) 1400', 'app (1)/app (1) 800',
                                            'app (1)/pool (2) 600', 'other (9) 100',
                                            'other (9)/pool (9) 100']);
  assert.deepEqual(tops('name'), ['app 800', 'pool 700']);
  assert.deepEqual(tops('cause'), ['read 800', 'futex 700']);
});

test('each metric sums its own time', () => {
  const total = (metric: Metric) => graph(metric, 'none').root.total;
  assert.deepEqual(kMetrics.map(total), [1500, 1300, 200, 2100]);
});

test('wall time has running and lost time once per thread, and once by cause', () => {
  const bare = (grouping: Grouping) =>
    boxes(graph('wall', grouping)).filter((box) => /\((running|lost)\)/.test(box));
  assert.deepEqual(bare('name'), ['pool/(running) 350', 'pool/(lost) 50', 'app/(running) 200']);
  assert.deepEqual(bare('cause'), ['(running) 550', '(lost) 50']);
});

test('no box is smaller than its children together, in any view', () => {
  for (const metric of kMetrics) {
    for (const grouping of kGroupings) {
      const tree = graph(metric, grouping);
      const visit = (node: FlameNode) => {
        const below = tree.childrenOf(node).reduce((ns, child) => ns + child.total, 0);
        assert.ok(below <= node.total, `${metric} by ${grouping}`);
        const own = tree.order.subarray(node.from, node.to);
        assert.equal(sumOf(metricColumn(model.rows, metric), own), node.total);
        tree.childrenOf(node).forEach(visit);
      };
      visit(tree.root);
    }
  }
});

test('a filter keeps and leaves out; facets tell what each choice holds', () => {
  const futex = model.causes.indexOf('futex');
  const only: Filter = {only: [{facet: 'cause', value: futex}], not: []};
  const not: Filter = {only: [], not: [{facet: 'cause', value: futex}]};
  assert.equal(graph('off-cpu', 'none', only).root.total, 700);
  assert.equal(graph('off-cpu', 'none', not).root.total, 800);
  const both: Filter = {only: [...only.only, {facet: 'thread', value: 1}], not: []};
  assert.equal(graph('off-cpu', 'none', both).root.total, 300);
  const shares = facetShares(model, 'off-cpu', only, selectRows(model, 'off-cpu', only), 'cause');
  assert.deepEqual(shares.map(({value, ns}) => [model.causes[value], ns]),
                   [['read', 800], ['futex', 700]], 'its own filter does not count');
  const threads = facetShares(model, 'off-cpu', only, selectRows(model, 'off-cpu', only), 'thread');
  assert.deepEqual(threads.map((share) => share.ns), [300, 300, 100]);
});

test('waits that cross an edge of the window can be left out or singled out', () => {
  const before = kEdges.indexOf('began before');
  const inside: Filter = {only: [], not: [{facet: 'edge', value: before}]};
  assert.equal(graph('off-cpu', 'none', inside).root.total, 1200);
  const across: Filter = {only: [{facet: 'edge', value: before}], not: []};
  assert.deepEqual(boxes(graph('wall', 'none', across)), ['main 300', 'main/idle 300']);
});

test('a search counts a stack once, plain or as a regular expression', () => {
  const matched = (text: string, regex: boolean, grouping: Grouping = 'none') => {
    const tree = graph('off-cpu', grouping);
    const search = searchLabels(model, text, regex)!;
    return search.error !== '' ? search.error
      : sumOf(model.rows.total_ns, matchedRows(tree, search.matches));
  };
  assert.equal(matched('WORK', false), 1100);
  assert.equal(matched('o', false), 1200, 'lock below work, and lock below [root ...: once each');
  assert.equal(matched('^(lock|idle)$', true), 700);
  assert.equal(matched('.', false), 0, 'a dot is a dot');
  assert.match(String(matched('(', true)), /[Ii]nvalid/);
  assert.equal(matched('futex', false, 'cause'), 700, 'groups in the graph are searched too');
  assert.equal(matched('futex', false, 'none'), 0);
  assert.equal(searchLabels(model, '', false), null);
});

test('a zoom path leads back to its box, or as far as the graph has it', () => {
  const tree = graph('off-cpu', 'none');
  const main = tree.childrenOf(tree.root)[0]!;
  const work = tree.childrenOf(main)[0]!;
  const path = tree.pathTo(work);
  assert.equal(tree.follow(path), work);
  assert.equal(graph('run-queue', 'none').follow([...path, 12345]).total, 200);
  assert.equal(tree.follow([12345]), tree.root);
});

test('a description tells time, share, intervals, longest and where the name is from', () => {
  const tree = graph('off-cpu', 'none');
  const main = tree.childrenOf(tree.root)[0]!;
  const {title, facts} = describeNode(tree, main, tree.root);
  assert.equal(title, 'main');
  assert.deepEqual(facts, [
    {name: 'Time', value: '1.40 µs, 93 % of all shown'},
    {name: 'Intervals', value: '6, longest 300 ns'},
    {name: 'Module', value: '/bin/app (file)'},
    {name: 'Name from', value: 'symbol table (.symtab)'},
  ]);
});

test('the layout fills the width; what is too narrow shares one box', () => {
  const tree = graph('off-cpu', 'none');
  const wide = layOut(tree, tree.root, 1500);
  assert.deepEqual(wide.levels[1]!.map((box) => [box.x, box.width]), [[0, 1400], [1400, 100]]);
  const narrow = layOut(tree, tree.root, 15);
  assert.deepEqual(narrow.levels[1]!.map((box) => [box.x, box.width, box.rest]),
                   [[0, 14, 0], [14, 1, 1]]);
  const zoomed = layOut(tree, tree.childrenOf(tree.childrenOf(tree.root)[0]!)[0]!, 1100);
  assert.deepEqual(zoomed.levels.map((level) => level.length), [1, 1, 1, 2]);
  assert.equal(boxAt(zoomed, 3, 799)!.width, 800);
  assert.equal(boxAt(zoomed, 3, 800)!.width, 300);
  assert.equal(boxAt(zoomed, 9, 1), null);
});

test('arrow keys lead to the neighbours and stop at the edges', () => {
  const tree = graph('off-cpu', 'none');
  const layout = layOut(tree, tree.root, 1500);
  const names = (['deeper', 'deeper', 'right', 'right', 'left', 'shallower', 'shallower',
                  'shallower'] as const);
  let box = layout.levels[0]![0]!;
  const seen = names.map((direction) => {
    box = neighbour(layout, box, direction);
    return model.labels.text[box.node.label];
  });
  assert.deepEqual(seen, ['main', 'work', 'idle', 'lock', 'idle', 'main', 'all', 'all']);
});

test('a long name gives up arguments, then namespaces, then its end', () => {
  const name = 'ns::Queue<std::pair<int, int>>::pop(ns::Item const&)';
  assert.equal(fittingName(name, 60, true), name);
  assert.equal(fittingName(name, 20, true), 'ns::Queue::pop');
  assert.equal(fittingName(name, 10, true), 'Queue::pop');
  assert.equal(fittingName(name, 4, true), 'pop');
  const rust = 'std::rt::lang_start::<()>::{closure#0}';
  assert.equal(fittingName(rust, 30, true), 'rt::lang_start::{closure#0}');
  assert.equal(fittingName(rust, 25, true), 'lang_start::{closure#0}');
  assert.equal(fittingName(rust, 14, true), 'std::rt::lang…');
  assert.equal(fittingName('reader::join::<T>', 13, true), 'reader::join');
  assert.equal(fittingName('abcdefgh', 5, true), 'abcd…');
  assert.equal(fittingName('postgres (4242)', 10, false), 'postgres …');
  assert.equal(fittingName('main', 2, true), '');
  assert.equal(fittingName('Row::operator<(Row const&)', 20, true), 'Row::operator<(Row …');
});
