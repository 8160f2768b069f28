// The table of threads: where each one's wall time went. A click filters everything by that thread.
import {useMemo} from 'preact/hooks';
import {agreement, sortedThreads} from '../model/thread_table.ts';
import type {ProcessEntry, ThreadEntry} from '../model/document.ts';
import {formatCount, formatDuration, formatShare, plural, visibleName} from '../model/text.ts';
import {chosen, toggled} from '../model/view.ts';
import {PhaseBar} from './phase_bar.tsx';
import type {ViewProps} from './toolbar.tsx';
import {VirtualGrid, type Column} from './virtual_grid.tsx';

const kRowHeight_px = 32;
const kColumns: Column[] = [
  {key: 'name', title: 'Thread', sortable: true},
  {key: 'tid', title: 'tid', sortable: true, numeric: true},
  {key: 'process', title: 'Process', sortable: true},
  {key: 'alive', title: 'Alive', sortable: true, numeric: true, hint: 'time alive in the window'},
  {key: 'bar', title: 'Wall time by phase', sortable: false},
  {key: 'running', title: 'Running', sortable: true, numeric: true},
  {key: 'run-queue', title: 'Run queue', sortable: true, numeric: true},
  {key: 'blocked', title: 'Blocked', sortable: true, numeric: true},
  {key: 'intervals', title: 'Intervals', sortable: true, numeric: true,
   hint: 'off-CPU intervals'},
  {key: 'kernel', title: 'Kernel agrees', sortable: false,
   hint: 'our running and run-queue time against /proc/PID/task/TID/schedstat'},
];
const kTemplate = 'minmax(190px,1.5fr) 72px minmax(110px,1fr) 84px minmax(140px,1.8fr) 84px 84px ' +
  '84px 84px 132px';

function AgreementCell({thread}: {thread: ThreadEntry}) {
  const {verdict, running_ns, run_queue_ns} = agreement(thread);
  if (verdict === 'none') return <span class="dim" title="no schedstat for this thread">–</span>;
  const text = `running ${formatDuration(running_ns)}, run queue ${formatDuration(run_queue_ns)} ` +
    'more than the kernel says';
  return verdict === 'agrees'
    ? <span class="agrees" title={text}>✓ agrees</span>
    : <span class="differs" title={text}>
        {formatShare(Math.max(Math.abs(running_ns), Math.abs(run_queue_ns)),
                     thread.times.alive_ns)} off</span>;
}

function endText(thread: ThreadEntry): string {
  return thread.end === 'alive' ? '' : visibleName(thread.end, 20);
}

function Mark({thread}: {thread: ThreadEntry}) {
  if (thread.folded > 0) {
    return <span class="badge" title={`${plural(thread.folded, 'thread')} whose own records did ` +
      'not fit are added up here'}>{formatCount(thread.folded)} folded</span>;
  }
  if (thread.kernel) return <span class="badge" title="kernel thread">kernel</span>;
  const end = endText(thread);
  return end === '' ? null : <span class="badge" title="how this thread's life ended">{end}</span>;
}

function ThreadCells({thread, process, hasRows}: {thread: ThreadEntry; process: ProcessEntry;
                                                  hasRows: boolean}) {
  const {times} = thread;
  return (
    <>
      <span role="gridcell" class="thread-name" title={visibleName(thread.name)}>
        <bdi>{visibleName(thread.name, 60)}</bdi> <Mark thread={thread} />
        {!hasRows && <span class="badge pale"
          title="no off-CPU interval of this thread is in the profile">no intervals</span>}
      </span>
      <span role="gridcell" class="numeric">{thread.folded > 0 ? '–' : thread.tid}</span>
      <span role="gridcell" title={visibleName(process.command_line || process.name)}>
        <bdi>{visibleName(process.name, 40)}</bdi> <span class="dim">{process.pid}</span></span>
      <span role="gridcell" class="numeric">{formatDuration(times.alive_ns)}</span>
      <span role="gridcell"><PhaseBar times={times} small /></span>
      <span role="gridcell" class="numeric">{formatDuration(times.running_ns)}</span>
      <span role="gridcell" class="numeric">
        {formatDuration(times.run_queue_ns + times.censored_run_queue_ns)}</span>
      <span role="gridcell" class="numeric">
        {formatDuration(times.blocked_ns + times.censored_blocked_ns)}</span>
      <span role="gridcell" class="numeric">{formatCount(times.intervals)}</span>
      <span role="gridcell">
        <AgreementCell thread={thread} />
        {thread.residual_ns !== 0 && <span class="differs" title="not in any phase">
          {' '}residual {formatDuration(thread.residual_ns)}</span>}
      </span>
    </>
  );
}

export function Threads({model, view, update}: ViewProps) {
  const {threads, processes, rows} = model.document;
  const order = useMemo(() => sortedThreads(model.document, view.threadOrder),
                        [model, view.threadOrder.column, view.threadOrder.down]);
  const withRows = useMemo(() => new Set(rows.map((row) => row.thread)), [model]);
  const choice = (row: number) => ({facet: 'thread' as const, value: order[row]!});
  const isSelected = (row: number) => chosen(view.filter, 'only', choice(row));
  const render = (row: number) => {
    const thread = threads[order[row]!]!;
    return <ThreadCells thread={thread} process={processes[thread.process]!}
                        hasRows={withRows.has(order[row]!)} />;
  };
  return (
    <section class="section" aria-labelledby="threads-title">
      <h2 id="threads-title">Threads <small>{formatCount(threads.length)}
        {threads.length > 0 ? '; click one to filter by it' : ''}</small></h2>
      <VirtualGrid id="threads" label="Threads" columns={kColumns} template={kTemplate}
        rowCount={order.length} heightOf={() => kRowHeight_px} heightKey={order} maxHeight={330}
        order={view.threadOrder} onOrder={(threadOrder) => update({threadOrder})}
        onActivate={(row) => update({filter: toggled(view.filter, 'only', choice(row))})}
        isSelected={isSelected} classOf={(row) => (isSelected(row) ? 'selected' : '')}
        render={render} empty="This profile has no threads." />
    </section>
  );
}
