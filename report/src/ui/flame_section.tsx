// The flame graph with its heading, its breadcrumb and its legend.
import {zoomedOut, FlameGraph} from './flame_graph.tsx';
import type {FlameTree} from '../model/flame_tree.ts';
import type {Model} from '../model/model.ts';
import {formatDuration, visibleName} from '../model/text.ts';
import type {ViewProps} from './toolbar.tsx';

const kCrumbsAtEnd = 4;

function Breadcrumb({model, tree, zoom, onZoom}: {model: Model; tree: FlameTree; zoom: number;
                                                  onZoom: (node: number) => void}) {
  const chain: number[] = [];
  for (let n = zoom; n >= 0; n = tree.parent[n]!) chain.push(n);
  chain.reverse();
  const cut = chain.length > kCrumbsAtEnd + 2;
  const shown = cut ? [chain[0]!, ...chain.slice(-kCrumbsAtEnd)] : chain;
  return (
    <nav class="crumbs" aria-label="Zoom">
      {shown.map((node, i) => (
        <span key={node}>
          {i > 0 && <span class="crumb-gap" aria-hidden="true">{cut && i === 1 ? '› … ›' : '›'}</span>}
          <button type="button" aria-current={node === zoom ? 'location' : undefined}
                  onClick={() => onZoom(node)}>
            <bdi>{visibleName(model.labels.text[tree.label[node]!]!, 48)}</bdi></button>
        </span>
      ))}
      {zoom !== 0 && <button type="button" class="quiet" id="zoom-out" title="zoom out (Escape)"
        onClick={() => onZoom(zoomedOut(tree, zoom))}>Zoom out</button>}
    </nav>
  );
}

const kLegend: [string, string][] = [
  ['user', 'user'], ['kernel', 'kernel'], ['placeholder', 'placeholder'], ['match', 'search match'],
];

export function FlameSection({model, view, update, tree, zoom, matches}: ViewProps & {
    tree: FlameTree; zoom: number; matches: Uint8Array | null}) {
  const onZoom = (node: number) => update({zoom: tree.pathTo(node)});
  return (
    <section class="section" aria-labelledby="flame-title">
      <div class="section-head">
        <h2 id="flame-title">Flame graph <small id="flame-total">{formatDuration(tree.total[0]!)}
          {' '}shown</small></h2>
        <ul class="flame-legend" aria-label="Colours">
          {kLegend.map(([kind, text]) => (
            <li key={kind}><span class={`swatch frame-${kind}`} />{text}</li>
          ))}
          {view.metric === 'wall' && <li><span class="swatch frame-running" />running</li>}
        </ul>
        <button type="button" id="flip" class="quiet" aria-pressed={view.rootAtBottom}
                onClick={() => update({rootAtBottom: !view.rootAtBottom})}>
          Root at the {view.rootAtBottom ? 'bottom' : 'top'}</button>
      </div>
      <Breadcrumb model={model} tree={tree} zoom={zoom} onZoom={onZoom} />
      {tree.total[0]! > 0
        ? <FlameGraph model={model} tree={tree} zoom={zoom} matches={matches}
                      rootAtBottom={view.rootAtBottom} onZoom={onZoom} />
        : <p class="nothing" id="flame-empty">No time passes: nothing was recorded under this
            metric, or the filters leave nothing over.</p>}
    </section>
  );
}
