// The card about a box: beside the pointer, or in the corner of the graph for the focused box.
import {useLayoutEffect, useRef, useState} from 'preact/hooks';
import type {Description} from '../model/describe.ts';

const kGap_px = 14;

export function Tooltip({description, x, y}: {description: Description; x: number; y: number}) {
  const card = useRef<HTMLDivElement>(null);
  const [size, setSize] = useState({width: 0, height: 0});
  useLayoutEffect(() => {
    const box = card.current!.getBoundingClientRect();
    if (box.width !== size.width || box.height !== size.height) {
      setSize({width: box.width, height: box.height});
    }
  });
  // Beside the point, on the other side where the window ends.
  const left = x + kGap_px + size.width > innerWidth ? x - kGap_px - size.width : x + kGap_px;
  const top = y + kGap_px + size.height > innerHeight ? y - kGap_px - size.height : y + kGap_px;
  return (
    <div class="tooltip" ref={card} aria-hidden="true"
         style={{left: `${Math.max(4, left)}px`, top: `${Math.max(4, top)}px`}}>
      <p class="tooltip-title"><bdi>{description.title}</bdi></p>
      <p class="tooltip-kind">{description.kind}</p>
      <dl>
        {description.facts.map((fact) => (
          <div key={fact.name}><dt>{fact.name}</dt><dd><bdi>{fact.value}</bdi></dd></div>
        ))}
      </dl>
    </div>
  );
}
