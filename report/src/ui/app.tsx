// The page: holds the view, derives what is shown from it, and knows the keys.
import {useCallback, useEffect, useMemo, useRef, useState} from 'preact/hooks';
import {FlameTree} from '../model/flame_tree.ts';
import type {Model} from '../model/model.ts';
import {matchedRows, searchLabels} from '../model/search.ts';
import {metricColumn, selectRows, sumOf} from '../model/select.ts';
import {StackLines, sumStacks} from '../model/stack_table.ts';
import {defaultView, kGroupings, kMetrics, readView, writeView, type View} from '../model/view.ts';
import {About} from './about.tsx';
import {zoomedOut} from './flame_graph.tsx';
import {FlameSection} from './flame_section.tsx';
import {Help} from './help.tsx';
import {Stacks} from './stacks.tsx';
import {Summary} from './summary.tsx';
import {Threads} from './threads.tsx';
import {TimelineSection} from './timeline_section.tsx';
import {Toolbar} from './toolbar.tsx';

// The view, kept in step with the page's address.
function useView(model: Model): [View, (change: Partial<View>) => void] {
  const [view, setView] = useState(() => readView(location.hash, model));
  useEffect(() => {
    const listen = () => setView(readView(location.hash, model));
    addEventListener('hashchange', listen);
    return () => removeEventListener('hashchange', listen);
  }, [model]);
  useEffect(() => {
    const hash = writeView(view, defaultView(model));
    if (hash === location.hash.slice(1)) return;
    history.replaceState(null, '', hash === '' ? location.pathname + location.search : `#${hash}`);
  }, [view]);
  const update = useCallback((change: Partial<View>) =>
    setView((old) => ({...old, ...change})), []);
  return [view, update];
}

function useDerived(model: Model, view: View) {
  const {metric, grouping, filter} = view;
  const selected = useMemo(() => selectRows(model, metric, filter), [model, metric, filter]);
  const tree = useMemo(() => new FlameTree(model, metric, grouping, selected),
                       [model, metric, grouping, selected]);
  const search = useMemo(() => searchLabels(model, view.search, view.regex),
                         [model, view.search, view.regex]);
  const matches = search && search.error === '' ? search.matches : null;
  const found = useMemo(() => (matches ? matchedRows(tree, matches) : null), [tree, matches]);
  const matched = found && sumOf(metricColumn(model.rows, metric), found);
  const stacks = useMemo(() => new StackLines(model), [model]);
  const sums = useMemo(() => sumStacks(stacks, found ?? selected), [stacks, found, selected]);
  const zoom = useMemo(() => tree.follow(view.zoom), [tree, view.zoom]);
  return {selected, tree, search, matches, matched, stacks, sums, zoom};
}

const kPlaces: Record<string, string> = {
  f: 'flame', l: 'timeline', t: 'threads', s: 'stacks', '/': 'search',
};

// Keys that work wherever the focus is, except while typing.
function useKeys(view: View, update: (change: Partial<View>) => void, zoomOut: () => void,
                 showHelp: () => void) {
  const latest = useRef({view, zoomOut});
  latest.current = {view, zoomOut};
  useEffect(() => {
    const listen = (event: KeyboardEvent) => {
      const target = event.target as HTMLElement;
      if (event.ctrlKey || event.metaKey || event.altKey || target.closest('dialog')) return;
      if (target.matches('input[type=search], select')) return;
      const {key} = event;
      const {view: now} = latest.current;
      const place = kPlaces[key];
      if (place !== undefined) document.getElementById(place)?.focus();
      else if (key === '?') showHelp();
      else if (key === 'Escape') latest.current.zoomOut();
      else if (/^[1-4]$/.test(key)) update({metric: kMetrics[Number(key) - 1]!});
      else if (key === 'g') {
        const next = (kGroupings.indexOf(now.grouping) + 1) % kGroupings.length;
        update({grouping: kGroupings[next]!, zoom: []});
      } else if (key === 'i') update({rootAtBottom: !now.rootAtBottom});
      else if (key === 'c') update({filter: {only: [], not: []}});
      else return;
      event.preventDefault();
    };
    addEventListener('keydown', listen);
    return () => removeEventListener('keydown', listen);
  }, []);
}

export function App({model}: {model: Model}) {
  const [view, update] = useView(model);
  const [help, setHelp] = useState(false);
  const {selected, tree, search, matches, matched, stacks, sums, zoom} = useDerived(model, view);
  useKeys(view, update, () => update({zoom: tree.pathTo(zoomedOut(zoom))}),
          () => setHelp(true));
  const props = {model, view, update};
  return (
    <>
      <Summary model={model} />
      <main>
        <Toolbar {...props} selected={selected} error={search?.error ?? ''} matched={matched}
                 total={tree.root.total} onHelp={() => setHelp(true)} />
        <FlameSection {...props} tree={tree} zoom={zoom} matches={matches} />
        {model.timeline && <TimelineSection {...props} timeline={model.timeline} />}
        <Threads {...props} />
        <Stacks {...props} stacks={stacks} sums={sums} />
        <About document={model.document} />
      </main>
      {help && <Help onClose={() => setHelp(false)} />}
    </>
  );
}
