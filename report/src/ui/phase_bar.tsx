// The bar of wall time by phase: for the whole profile with a legend, or small for one thread.
import type {ThreadTimes} from '../model/document.ts';
import {kPhases, kPhaseText, phaseTimes} from '../model/phases.ts';
import {formatDuration, formatShare} from '../model/text.ts';

export function phaseBarText(times: ThreadTimes): string {
  const phases = phaseTimes(times);
  const parts = kPhases.filter((phase) => phases[phase] > 0).map((phase) =>
    `${kPhaseText[phase].name.toLowerCase()} ${formatDuration(phases[phase])} ` +
    `(${formatShare(phases[phase], times.alive_ns)})`);
  return parts.length > 0 ? parts.join(', ') : 'no time recorded';
}

export function PhaseBar({times, small}: {times: ThreadTimes; small?: boolean}) {
  const phases = phaseTimes(times);
  const text = phaseBarText(times);
  return (
    <div class={small ? 'bar small' : 'bar'} role="img" aria-label={text} title={text}>
      {kPhases.map((phase) => phases[phase] > 0 && (
        <div key={phase} class={`phase ${phase}`} style={{flexGrow: phases[phase]}} />
      ))}
    </div>
  );
}

export function PhaseLegend({times}: {times: ThreadTimes}) {
  const phases = phaseTimes(times);
  return (
    <dl class="legend">
      {kPhases.map((phase) => (
        <div key={phase} class={phases[phase] === 0 ? 'zero' : ''} data-phase={phase}
             data-ns={phases[phase]} title={kPhaseText[phase].meaning}>
          <dt><span class={`swatch ${phase}`} />{kPhaseText[phase].name}</dt>
          <dd><b>{formatDuration(phases[phase])}</b>
            <span class="share">{formatShare(phases[phase], times.alive_ns)}</span></dd>
        </div>
      ))}
    </dl>
  );
}
