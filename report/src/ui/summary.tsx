// The top of the page: what was recorded, the answer in one sentence, where wall time went, whether
// the books balance, and what was lost.
import {explainEmpty} from '../model/empty.ts';
import type {LossEntry, ProfileDocument, UnresolvedEntry} from '../model/document.ts';
import type {Model} from '../model/model.ts';
import {answerParts, subject, topCauses} from '../model/phases.ts';
import {formatCount, formatDuration, formatShare, plural, visibleName} from '../model/text.ts';
import {StacksPanel} from './stack_health.tsx';
import {PhaseBar, PhaseLegend} from './phase_bar.tsx';

const kShownWarnings = 20;
const kShownModules = 4;

function startTime(document: ProfileDocument): string {
  const match = /^(\d{4}-\d{2}-\d{2})T(\d{2}:\d{2}:\d{2})/.exec(document.window.start_time ?? '');
  return match ? `${match[1]} ${match[2]} UTC` : 'at an unknown time';
}

function commandOf(document: ProfileDocument): string {
  const used = new Set(document.threads.map((thread) => thread.process));
  if (used.size !== 1) return '';
  const process = document.processes[[...used][0]!]!;
  return process.command_line || process.executable;
}

function Masthead({document}: {document: ProfileDocument}) {
  const command = commandOf(document);
  return (
    <div class="masthead">
      <p class="facts">
        <span class="brand">Dwell</span>
        <span class="target" title="target of the recording">
          <bdi>{visibleName(document.target, 120)}</bdi></span>
        <span title="host"><bdi>{visibleName(document.host, 80)}</bdi></span>
        <span title={`kernel ${visibleName(document.kernel, 80)}`}>
          {plural(document.cpus, 'CPU')}</span>
        <span title="length of the recording window">
          {formatDuration(document.window.length_ns)}</span>
        <span title="start of the window">{startTime(document)}</span>
      </p>
      {command !== '' && <p class="command" title={visibleName(command)}>
        <span class="prompt" aria-hidden="true">$ </span>{visibleName(command, 300)}</p>}
    </div>
  );
}

function Answer({model}: {model: Model}) {
  const {document} = model;
  const times = document.totals.threads;
  const causes = topCauses(model);
  if (times.alive_ns === 0) return <h1 id="answer">{subject(document)}: no time recorded</h1>;
  const cut = times.censored_blocked_ns + times.censored_run_queue_ns;
  return (
    <>
      <h1 id="answer">
        {subject(document)}:{' '}
        {answerParts(times).map(({share, word, phase}, i) => (
          <span key={phase}>{i > 0 ? ', ' : ''}
            <span class={`answer-${phase}`}>{share} {word}</span></span>
        ))}
      </h1>
      {causes.length > 0 && <p class="causes">
        Off-CPU time was spent in{' '}
        {causes.map(({cause, share}, i) => (
          <span key={cause}>{i > 0 ? ', ' : ''}<b><bdi>{cause}</bdi></b> {share}</span>
        ))}.
        {cut > 0 && <> {formatShare(cut, times.alive_ns)} of the time belongs to intervals that
          cross an edge of the window.</>}
      </p>}
    </>
  );
}

function Conservation({document}: {document: ProfileDocument}) {
  const {totals} = document;
  const exact = totals.residual_ns === 0;
  return (
    <p class={`conservation ${exact ? 'good' : 'bad'}`} id="conservation">
      <span class="mark" aria-hidden="true">{exact ? '✓' : '!'}</span>
      {exact
        ? `The books balance: the five parts add up to the ${
            formatDuration(totals.threads.alive_ns)} that threads were alive; residual 0 ns.`
        : `The books do not balance: ${formatDuration(totals.residual_ns)} (${
            formatShare(Math.abs(totals.residual_ns), totals.threads.alive_ns)
          } of the time alive) is in none of the five parts.`}
    </p>
  );
}

// What a reader must know before trusting the numbers: counters of kind loss that are not zero.
function realLosses(document: ProfileDocument): LossEntry[] {
  return document.losses.filter((loss) => loss.loss && (loss.count > 0 || (loss.ns ?? 0) > 0));
}

function LossVerdict({document}: {document: ProfileDocument}) {
  const lost = realLosses(document).length > 0 || document.totals.threads.lost_ns > 0;
  return (
    <p class={`conservation ${lost ? 'bad' : 'good'}`} id="loss-verdict">
      <span class="mark" aria-hidden="true">{lost ? '!' : '✓'}</span>
      {lost ? 'Something was lost, see below.' : 'Nothing was lost.'}
    </p>
  );
}

function Losses({document}: {document: ProfileDocument}) {
  const losses = realLosses(document);
  const {lost_ns, alive_ns} = document.totals.threads;
  if (losses.length === 0 && lost_ns === 0) return null;
  return (
    <section class="panel losses" id="losses" aria-label="Losses" tabIndex={0}>
      <h2>Losses</h2>
      {lost_ns > 0 && <p>{formatDuration(lost_ns)} ({formatShare(lost_ns, alive_ns)}) of the time
        that threads were alive is lost: the probe had no state for them.</p>}
      {losses.length > 0 && <table>
        <thead><tr><th scope="col">What</th><th scope="col">Count</th>
          <th scope="col">Time</th><th scope="col">Meaning</th></tr></thead>
        <tbody>
          {losses.map((loss) => (
            <tr key={loss.name}>
              <th scope="row"><code><bdi>{visibleName(loss.name, 80)}</bdi></code></th>
              <td>{formatCount(loss.count)}</td>
              <td>{loss.ns === null ? 'not known' : formatDuration(loss.ns)}</td>
              <td><bdi>{visibleName(loss.meaning)}</bdi></td>
            </tr>
          ))}
        </tbody>
      </table>}
    </section>
  );
}

// Modules without names, those with one reason and one remedy together; most frames first.
function Unresolved({document}: {document: ProfileDocument}) {
  const groups = new Map<string, UnresolvedEntry[]>();
  for (const entry of [...document.unresolved].sort((a, b) => b.frames - a.frames)) {
    const key = `${entry.reason}\0${entry.remedy}`;
    groups.set(key, [...(groups.get(key) ?? []), entry]);
  }
  const name = (entry: UnresolvedEntry) => visibleName(document.modules[entry.module]!.path, 120);
  return (
    <>
      {[...groups.values()].slice(0, kShownWarnings).map((entries, i) => (
        <li key={i}>
          No names for {entries.slice(0, kShownModules).map((entry, k) => (
            <span key={k}>{k > 0 && ', '}<b><bdi>{name(entry)}</bdi></b>
              {' '}({plural(entry.frames, 'frame')})</span>
          ))}
          {entries.length > kShownModules &&
            ` and ${plural(entries.length - kShownModules, 'more module')}`}:
          {' '}<bdi>{visibleName(entries[0]!.reason)}</bdi>.
          {entries[0]!.remedy !== '' &&
            <span class="remedy">{visibleName(entries[0]!.remedy)}</span>}
        </li>
      ))}
    </>
  );
}

function Warnings({document}: {document: ProfileDocument}) {
  const {warnings, unresolved} = document;
  if (warnings.length + unresolved.length === 0) return null;
  return (
    <section class="panel warnings" id="warnings" aria-label="Warnings" tabIndex={0}>
      <h2>Warnings</h2>
      <ul>
        {warnings.slice(0, kShownWarnings).map((text, i) => (
          <li key={i}><bdi>{visibleName(text)}</bdi></li>
        ))}
        {warnings.length > kShownWarnings &&
          <li>and {formatCount(warnings.length - kShownWarnings)} more</li>}
        <Unresolved document={document} />
      </ul>
    </section>
  );
}

function Emptiness({document}: {document: ProfileDocument}) {
  const explanation = explainEmpty(document);
  if (explanation === null) return null;
  return (
    <section class="panel empty" id="empty" aria-label="Empty profile">
      <h2>This profile has no off-CPU intervals</h2>
      <p>{explanation.why}</p>
      <ul>{explanation.tries.map((text) => <li key={text}>{text}</li>)}</ul>
    </section>
  );
}

export function Summary({model}: {model: Model}) {
  const {document} = model;
  const times = document.totals.threads;
  return (
    <header class="summary">
      <Masthead document={document} />
      <Answer model={model} />
      <PhaseBar times={times} />
      <PhaseLegend times={times} />
      <div class="checks">
        <Conservation document={document} />
        <LossVerdict document={document} />
      </div>
      <div class="panels">
        <Emptiness document={document} />
        <Losses document={document} />
        <Warnings document={document} />
        <StacksPanel document={document} />
      </div>
    </header>
  );
}
