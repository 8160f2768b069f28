// The table of stacks: every stack with its cause and class, its times, and how its waits are
// distributed. A row opens to the whole stack.
import {useMemo, useState} from 'preact/hooks';
import {resolutionText} from '../model/describe.ts';
import type {Histogram} from '../model/histogram.ts';
import type {Model} from '../model/model.ts';
import {
  histogramOf, lineOf, sortedLines, type StackLine, type StackLines, type StackSums,
} from '../model/stack_table.ts';
import {
  baseName, formatCount, formatDuration, formatShare, plural, visibleName,
} from '../model/text.ts';
import {LargeHistogram, SmallHistogram} from './histogram.tsx';
import type {ViewProps} from './toolbar.tsx';
import {VirtualGrid, type Column} from './virtual_grid.tsx';

const kRowHeight_px = 46;
const kFrameHeight_px = 20;
const kMostFramesInSight = 24; // an opened stack with more frames scrolls
const kDetailHeight_px = 150;  // of what stands around the frames
const kFramesInLine = 6;

const kColumns: Column[] = [
  {key: 'cause', title: 'Cause', sortable: true},
  {key: 'stack', title: 'Stack, innermost first', sortable: false},
  {key: 'total', title: 'Off-CPU', sortable: true, numeric: true},
  {key: 'blocked', title: 'Blocked', sortable: true, numeric: true},
  {key: 'run-queue', title: 'Run queue', sortable: true, numeric: true},
  {key: 'count', title: 'Count', sortable: true, numeric: true},
  {key: 'mean', title: 'Mean', sortable: true, numeric: true},
  {key: 'max', title: 'Longest', sortable: true, numeric: true},
  {key: 'histogram', title: 'Durations', sortable: false,
   hint: 'bars are powers of two; heights grow with the square root of the count'},
];
const kTemplate = '142px minmax(220px,1fr) 84px 84px 84px 76px 80px 84px 116px';

function openHeight(model: Model, line: StackLine): number {
  const frames = model.document.stacks[line.stack]!.frames.length;
  return kRowHeight_px + kDetailHeight_px +
    Math.max(1, Math.min(frames, kMostFramesInSight)) * kFrameHeight_px;
}

// The innermost user frames, and the kernel frames below them, on one line each.
function StackCell({model, line}: {model: Model; line: StackLine}) {
  const {stacks, frames} = model.document;
  const stack = stacks[line.stack]!.frames;
  const names = (kernel: boolean) => {
    const chosen = [];
    for (const f of stack) {
      if ((frames[f]!.kind === 'kernel') === kernel) chosen.push(visibleName(frames[f]!.name, 80));
      if (chosen.length === kFramesInLine) break;
    }
    return chosen.join(' ← ');
  };
  const user = names(false);
  const kernel = names(true);
  return (
    <span role="gridcell" class="stack-cell">
      <span class="stack-user"><bdi>{user || kernel || '[no stack]'}</bdi></span>
      <span class="stack-kernel"><bdi>{user && kernel ? `in ${kernel}` : '\u00a0'}</bdi></span>
    </span>
  );
}

function Frames({model, line}: {model: Model; line: StackLine}) {
  const {stacks, frames, modules} = model.document;
  const stack = stacks[line.stack]!;
  return (
    <ol class="frames" style={{maxHeight: `${kMostFramesInSight * kFrameHeight_px}px`}}
        aria-label="Frames, innermost first">
      {stack.frames.length === 0 && <li class="placeholder">[no stack]</li>}
      {stack.frames.map((index, i) => {
        const frame = frames[index]!;
        const module = modules[frame.module]!;
        return (
          <li key={i} class={frame.kind} title={`${visibleName(frame.name)}\n${
            visibleName(module.path, 200)} ${visibleName(frame.address, 40)}\nname from: ${
            resolutionText(frame.how)}`}>
            <bdi>{visibleName(frame.name, 200)}</bdi>
            {frame.kind !== 'placeholder' &&
              <span class="module"><bdi>{visibleName(baseName(module.path), 60)}</bdi></span>}
          </li>
        );
      })}
    </ol>
  );
}

function ThreadsOf({model, line}: {model: Model; line: StackLine}) {
  const {rows, document} = model;
  const ns = new Map<number, number>();
  for (const row of line.rows) {
    const thread = rows.thread[row]!;
    ns.set(thread, (ns.get(thread) ?? 0) + rows.total_ns[row]!);
  }
  const all = [...ns].sort((a, b) => b[1] - a[1]);
  return (
    <p class="threads-of">
      {plural(all.length, 'thread')}:{' '}
      {all.slice(0, 4).map(([thread, time]) => {
        const {name, tid} = document.threads[thread]!;
        return `${visibleName(name, 32)} ${tid || ''} ${formatShare(time, line.total_ns)}`;
      }).join(', ')}
      {all.length > 4 ? ', …' : ''}
      {line.censored && '. Some cross an edge of the window: only the part inside counts'}
      {line.overflow && '. An overflow row: it holds what did not fit into a full map'}.
    </p>
  );
}

function Details({model, line, histogram}: {model: Model; line: StackLine;
                                            histogram: Histogram}) {
  return (
    <div class="details" onClick={(event) => event.stopPropagation()}>
      <ThreadsOf model={model} line={line} />
      <LargeHistogram histogram={histogram} />
      <Frames model={model} line={line} />
    </div>
  );
}

function StackCells({model, line, open}: {model: Model; line: StackLine; open: boolean}) {
  const histogram = histogramOf(model, line);
  const marks = `${line.overflow ? ', overflow' : ''}${line.censored ? ', cut' : ''}`;
  return (
    <>
      <span role="gridcell" class="cause-cell">
        <span class="disclosure" aria-hidden="true">{open ? '▾' : '▸'}</span>
        <span class="cause-name"><bdi>{visibleName(model.causes[line.cause]!, 40)}</bdi>
          <small>{visibleName(model.classes[line.class]!, 30)}{marks}</small></span>
      </span>
      <StackCell model={model} line={line} />
      <span role="gridcell" class="numeric strong">{formatDuration(line.total_ns)}</span>
      <span role="gridcell" class="numeric">{formatDuration(line.blocked_ns)}</span>
      <span role="gridcell" class="numeric">{formatDuration(line.run_queue_ns)}</span>
      <span role="gridcell" class="numeric">{formatCount(line.count)}</span>
      <span role="gridcell" class="numeric">{formatDuration(line.mean_ns)}</span>
      <span role="gridcell" class="numeric">{formatDuration(line.max_ns)}</span>
      <span role="gridcell"><SmallHistogram histogram={histogram} /></span>
      {open && <Details model={model} line={line} histogram={histogram} />}
    </>
  );
}

export function Stacks({model, view, update, stacks, sums}: ViewProps & {
    stacks: StackLines; sums: StackSums}) {
  const [open, setOpen] = useState<ReadonlySet<number>>(new Set()); // lines
  const sorted = useMemo(() => sortedLines(stacks, sums, view.stackOrder),
                         [stacks, sums, view.stackOrder.column, view.stackOrder.down]);
  const isOpen = (row: number) => open.size > 0 && open.has(sorted[row]!);
  const heightOf = (row: number) =>
    (isOpen(row) ? openHeight(model, lineOf(stacks, sums, sorted[row]!)) : kRowHeight_px);
  const toggle = (row: number) => {
    const next = new Set(open);
    if (!next.delete(sorted[row]!)) next.add(sorted[row]!);
    setOpen(next);
  };
  const heightKey = useMemo(() => ({}), [sorted, open]);
  const render = (row: number) => (
    <StackCells model={model} line={lineOf(stacks, sums, sorted[row]!)} open={isOpen(row)} />
  );
  return (
    <section class="section" aria-labelledby="stacks-title">
      <h2 id="stacks-title">Stacks <small>{formatCount(sorted.length)}
        {view.search !== '' && ' that match the search'}
        {sorted.length > 0 && '; click one to open it'}</small></h2>
      <VirtualGrid id="stacks" label="Stacks" columns={kColumns} template={kTemplate}
        rowCount={sorted.length} heightOf={heightOf}
        heightKey={heightKey} maxHeight={620} order={view.stackOrder}
        onOrder={(stackOrder) => update({stackOrder})} onActivate={toggle}
        classOf={(row) => (isOpen(row) ? 'open' : '')} isExpanded={isOpen} render={render}
        empty="No stack passes the filter and the search." />
    </section>
  );
}
