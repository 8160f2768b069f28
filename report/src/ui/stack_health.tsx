// How far the user stacks can be trusted, and what would make them better.
import {healthAdvice, healthSentence} from '../model/health.ts';
import type {ProfileDocument} from '../model/document.ts';
import {visibleName} from '../model/text.ts';

export function StacksPanel({document}: {document: ProfileDocument}) {
  const health = document.stack_health;
  if (health === null || health.off_cpu_ns === 0) return null;
  const advice = healthAdvice(document);
  return (
    <section class={`panel ${advice.length > 0 ? 'warnings' : 'stacks-health'}`} id="stack-health"
             aria-label="User stacks" tabIndex={0}>
      <h2>User stacks</h2>
      <p>{healthSentence(health)}</p>
      {advice.length > 0 && <ul>
        {advice.map(({who, what, remedy}, i) => (
          <li key={i}><b><bdi>{visibleName(who, 120)}</bdi></b>: {what}.
            <span class="remedy"><bdi>{visibleName(remedy)}</bdi></span></li>
        ))}
      </ul>}
    </section>
  );
}
