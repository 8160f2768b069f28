// The flame graph with its heading, its breadcrumb and its legend.
import {chainTo} from '../flame/layout.ts';
import {zoomedOut, FlameGraph} from './flame_graph.tsx';
import type {FlameNode, FlameTree} from '../model/flame_tree.ts';
import type {Model} from '../model/model.ts';
import {formatDuration, visibleName} from '../model/text.ts';
import type {ViewProps} from './toolbar.tsx';

const kCrumbsAtEnd = 4;

function Breadcrumb({model, zoom, onZoom}: {model: Model; zoom: FlameNode;
                                            onZoom: (node: FlameNode) => void}) {
  const chain = chainTo(zoom);
  const cut = chain.length > kCrumbsAtEnd + 2;
  const shown = cut ? [chain[0]!, ...chain.slice(-kCrumbsAtEnd)] : chain;
  return (
    <nav class="crumbs" aria-label="Zoom">
      {shown.map((node, i) => (
        <span key={node.depth}>
          {i > 0 && <span class="crumb-gap" aria-hidden="true">
            {cut && i === 1 ? '› … ›' : '›'}</span>}
          <button type="button" aria-current={node === zoom ? 'location' : undefined}
                  onClick={() => onZoom(node)}>
            <bdi>{visibleName(model.labels.text[node.label]!, 48)}</bdi></button>
        </span>
      ))}
      {zoom.parent !== null && <button type="button" class="quiet" id="zoom-out"
        title="zoom out (Escape)" onClick={() => onZoom(zoomedOut(zoom))}>Zoom out</button>}
    </nav>
  );
}

const kLegend: [string, string][] = [
  ['user', 'user'], ['kernel', 'kernel'], ['placeholder', 'placeholder'],
  ['match', 'search match'],
];

export function FlameSection({model, view, update, tree, zoom, matches}: ViewProps & {
    tree: FlameTree; zoom: FlameNode; matches: Uint8Array | null}) {
  const onZoom = (node: FlameNode) => update({zoom: tree.pathTo(node)});
  return (
    <section class="section" aria-labelledby="flame-title">
      <div class="section-head">
        <h2 id="flame-title">Flame graph <small id="flame-total" data-ns={tree.root.total}>
          {formatDuration(tree.root.total)} shown</small></h2>
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
      <Breadcrumb model={model} zoom={zoom} onZoom={onZoom} />
      {tree.root.total > 0
        ? <FlameGraph tree={tree} zoom={zoom} matches={matches}
                      rootAtBottom={view.rootAtBottom} onZoom={onZoom} />
        : <p class="nothing" id="flame-empty">No time passes: nothing was recorded under this
            metric, or the filters leave nothing over. Wall time (key 4) also shows running time.
          </p>}
    </section>
  );
}
