// Everything that decides what the graph and the tables show: metric, grouping, search, filters.
// The first line stays in sight while the page scrolls.
import {useMemo, useState} from 'preact/hooks';
import {kEdges} from '../model/edges.ts';
import {threadTitle, type Model} from '../model/model.ts';
import {facetShares, type FacetShare} from '../model/select.ts';
import {formatDuration, formatShare, visibleName} from '../model/text.ts';
import {chosen, toggled, type Facet, type Grouping, type Metric, type View} from '../model/view.ts';

const kMetricText: Record<Metric, {name: string; hint: string}> = {
  'off-cpu': {name: 'Off-CPU', hint: 'blocked and waiting for a CPU'},
  'blocked': {name: 'Blocked', hint: 'asleep until something happens'},
  'run-queue': {name: 'Run queue', hint: 'ready to run, waiting for a CPU'},
  'wall': {name: 'Wall', hint: 'off-CPU time, and running time as (running)'},
};
const kGroupingText: Record<Grouping, string> = {
  'process-thread': 'process › thread', 'process-name': 'process › thread name',
  'name': 'thread name', 'cause': 'cause', 'class': 'class',
  'none': 'nothing',
};
const kShownChips = 9;

export interface ViewProps {
  model: Model;
  view: View;
  update: (change: Partial<View>) => void;
}

export function choiceName(model: Model, facet: Facet, value: number): string {
  const {processes, threads} = model.document;
  switch (facet) {
    case 'process':
      return `${visibleName(processes[value]!.name, 40)} (${processes[value]!.pid})`;
    case 'thread': return threadTitle(threads[value]!);
    case 'cause': return visibleName(model.causes[value]!, 40);
    case 'class': return visibleName(model.classes[value]!, 40);
    case 'edge': return kEdges[value]!;
  }
}

function MetricPicker({view, update}: ViewProps) {
  return (
    <fieldset class="segments" id="metric">
      <legend class="hidden">Time shown</legend>
      {(Object.keys(kMetricText) as Metric[]).map((metric) => (
        <label key={metric} title={kMetricText[metric].hint}
               class={view.metric === metric ? 'on' : ''}>
          <input type="radio" name="metric" value={metric} checked={view.metric === metric}
                 onChange={() => update({metric})} />
          {kMetricText[metric].name}
        </label>
      ))}
    </fieldset>
  );
}

function SearchBox({view, update, error, matched, total}:
                   ViewProps & {error: string; matched: number | null; total: number}) {
  return (
    <div class="search" role="search">
      <input id="search" type="search" value={view.search} placeholder="Search frames  ( / )"
             aria-label="Search frames, threads and causes" spellcheck={false} maxLength={1000}
             aria-invalid={error !== ''} aria-describedby="search-result"
             onInput={(event) => update({search: event.currentTarget.value})}
             onKeyDown={(event) => {
               if (event.key === 'Escape') {
                 event.stopPropagation();
                 if (view.search !== '') update({search: ''});
                 else event.currentTarget.blur();
               }
             }} />
      <button type="button" id="regex" class="toggle" aria-pressed={view.regex}
              title="regular expression" aria-label="Search as regular expression"
              onClick={() => update({regex: !view.regex})}>.*</button>
      <output id="search-result" for="search" data-ns={matched ?? undefined}
              class={error !== '' ? 'error' : ''}>
        {error !== '' ? visibleName(error, 80)
          : matched === null ? ''
          : `${formatShare(matched, total)} matched, ${formatDuration(matched)}`}
      </output>
    </div>
  );
}

function Chip({model, view, update, facet, share, whole}:
              ViewProps & {facet: Facet; share: FacetShare; whole: number}) {
  const choice = {facet, value: share.value};
  const only = chosen(view.filter, 'only', choice);
  const not = chosen(view.filter, 'not', choice);
  const name = choiceName(model, facet, share.value);
  return (
    <span class={`chip ${only ? 'only' : ''} ${not ? 'not' : ''}`}>
      <button type="button" aria-pressed={only} title={`show only ${name}`}
              onClick={() => update({filter: toggled(view.filter, 'only', choice)})}>
        <bdi>{name}</bdi> <small>{formatShare(share.ns, whole)}</small>
      </button>
      <button type="button" class="exclude" aria-pressed={not}
              aria-label={not ? `bring ${name} back` : `leave ${name} out`}
              title={not ? `bring ${name} back` : `leave ${name} out`}
              onClick={() => update({filter: toggled(view.filter, 'not', choice)})}>
        {not ? '+' : '×'}
      </button>
    </span>
  );
}

function FacetRow({facet, title, chosenOnly, ...props}:
                  ViewProps & {selected: Int32Array; facet: Facet; title: string;
                               chosenOnly?: boolean}) {
  const {model, view} = props;
  const [all, setAll] = useState(false);
  const {selected} = props;
  const shares = [...useMemo(() => facetShares(model, view.metric, view.filter, selected, facet),
                             [model, view.metric, view.filter, selected, facet])];
  const whole = shares.reduce((sum, share) => sum + share.ns, 0);
  const isChosen = (share: FacetShare) =>
    chosen(view.filter, 'only', {facet, value: share.value}) ||
    chosen(view.filter, 'not', {facet, value: share.value});
  // A chosen thing without time under this metric stays in sight, or it could not be taken back.
  for (const choice of [...view.filter.only, ...view.filter.not]) {
    if (choice.facet === facet && !shares.some((s) => s.value === choice.value)) {
      shares.push({value: choice.value, ns: 0});
    }
  }
  const shown = chosenOnly ? shares.filter(isChosen)
    : all ? shares.slice(0, 300)
    : shares.filter((share, i) => i < kShownChips || isChosen(share));
  if (shown.length === 0) return null;
  const hidden = chosenOnly ? 0 : shares.length - shown.length;
  return (
    <div class="facet" role="group" aria-label={`Filter by ${title.toLowerCase()}`}>
      <span class="facet-title">{title}</span>
      <span class="chips">
        {shown.map((share) => (
          <Chip key={share.value} {...props} facet={facet} share={share} whole={whole} />
        ))}
        {(hidden > 0 || all) && <button type="button" class="quiet" aria-expanded={all}
          onClick={() => setAll(!all)}>{all ? 'fewer' : `${hidden} more`}</button>}
      </span>
    </div>
  );
}

export function Toolbar(props: ViewProps & {selected: Int32Array; error: string;
                                            matched: number | null; total: number;
                                            onHelp: () => void}) {
  const {model, view, update} = props;
  const crossesEdge = useMemo(() => model.rows.edge.some((edge) => edge !== 0), [model]);
  const filtered = view.filter.only.length + view.filter.not.length > 0;
  return (
    <>
      <div class="toolbar" role="region" aria-label="What is shown">
        <MetricPicker {...props} />
        <label class="pick">Group by{' '}
          <select id="grouping" value={view.grouping} onChange={(event) =>
            update({grouping: event.currentTarget.value as Grouping, zoom: []})}>
            {(Object.keys(kGroupingText) as Grouping[]).map((grouping) => (
              <option key={grouping} value={grouping}>{kGroupingText[grouping]}</option>
            ))}
          </select>
        </label>
        <SearchBox {...props} />
        <button type="button" class="quiet help-button" aria-label="Keyboard shortcuts"
                title="keyboard shortcuts" onClick={props.onHelp}>?</button>
      </div>
      <div class="facets" role="region" aria-label="Filters">
        {model.document.processes.length > 1 &&
          <FacetRow {...props} facet="process" title="Process" />}
        <FacetRow {...props} facet="thread" title="Thread" chosenOnly />
        <FacetRow {...props} facet="cause" title="Cause" />
        <FacetRow {...props} facet="class" title="Class" />
        {crossesEdge && <FacetRow {...props} facet="edge" title="Window" />}
        {filtered && <button type="button" id="clear-filters" class="quiet"
          onClick={() => update({filter: {only: [], not: []}})}>Clear filters</button>}
      </div>
    </>
  );
}
