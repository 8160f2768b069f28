// The dialog that lists the keys.
import {useLayoutEffect, useRef} from 'preact/hooks';

const kKeys: [string, string][] = [
  ['?', 'this help'],
  ['/', 'search'],
  ['f  l  t  s', 'go to the flame graph, the timeline, the threads, the stacks'],
  ['← → ↑ ↓', 'move in the flame graph, the timeline or a table'],
  ['+  -', 'zoom the timeline; drawing over it does so too'],
  ['Enter', 'zoom into the frame; filter by the thread; open the stack'],
  ['Escape', 'zoom out one step; leave the search'],
  ['Home', 'show everything'],
  ['1  2  3  4', 'off-CPU, blocked, run queue, wall time'],
  ['g', 'next grouping'],
  ['i', 'turn the flame graph upside down'],
  ['c', 'clear the filters'],
];

export function Help({onClose}: {onClose: () => void}) {
  const dialog = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => {
    const element = dialog.current!;
    element.showModal();
    return () => element.close();
  }, []);
  return (
    <dialog ref={dialog} class="help" aria-labelledby="help-title" onClose={onClose}>
      <h2 id="help-title">Keys</h2>
      <dl>
        {kKeys.map(([key, meaning]) => (
          <div key={key}><dt><kbd>{key}</kbd></dt><dd>{meaning}</dd></div>
        ))}
      </dl>
      <p>The address of this page keeps the view: copy it to come back to it.</p>
      <button type="button" onClick={() => dialog.current!.close()}>Close</button>
    </dialog>
  );
}
