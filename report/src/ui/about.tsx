// The end of the page: how the recording was made, what it cost, and every counter, also the zeros.
import type {ProfileDocument} from '../model/document.ts';
import {formatBytes, formatCount, formatDuration, visibleName} from '../model/text.ts';

function Facts({document}: {document: ProfileDocument}) {
  const {cost, window} = document;
  const facts: [string, string][] = [
    ['Dwell', document.dwell],
    ['Host', document.host],
    ['Kernel', document.kernel],
    ['CPUs', formatCount(document.cpus)],
    ['Target', document.target],
    ['Limits and filters', document.options.join(', ') || 'none'],
    ['Window', `${window.start_time}, ${formatDuration(window.length_ns)}`],
    ['Cost: CPU time of the recorder', formatDuration(cost.recorder_cpu_ns)],
    ['Cost: memory of the kernel maps', formatBytes(cost.kernel_memory_bytes)],
    ['Cost: peak memory of the recorder', formatBytes(cost.user_memory_bytes)],
  ];
  return (
    <dl class="about-facts">
      {facts.map(([name, value]) => (
        <div key={name}><dt>{name}</dt><dd><bdi>{visibleName(value)}</bdi></dd></div>
      ))}
    </dl>
  );
}

function Counters({document}: {document: ProfileDocument}) {
  return (
    <table class="counters">
      <caption>Counters: losses, and what was degraded or left out</caption>
      <thead><tr><th scope="col">Counter</th><th scope="col">Count</th><th scope="col">Time</th>
        <th scope="col">Kind</th><th scope="col">Meaning</th></tr></thead>
      <tbody>
        {document.losses.map((loss) => (
          <tr key={loss.name} class={loss.count === 0 ? 'zero' : ''}>
            <th scope="row"><code>{visibleName(loss.name, 80)}</code></th>
            <td>{formatCount(loss.count)}</td>
            <td>{loss.ns === null ? '–' : formatDuration(loss.ns)}</td>
            <td>{loss.loss ? 'loss' : 'information'}</td>
            <td>{visibleName(loss.meaning)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

export function About({document}: {document: ProfileDocument}) {
  return (
    <section class="section about" aria-labelledby="about-title">
      <h2 id="about-title">About this recording</h2>
      <Facts document={document} />
      {document.losses.length > 0 && <Counters document={document} />}
    </section>
  );
}
