// Entry: reads the data block, builds the model, shows the page, or says what is wrong.
import {render, type ComponentChild} from 'preact';
import {decodeDocument} from './model/decode.ts';
import {DocumentError} from './model/document.ts';
import {buildModel} from './model/model.ts';
import {visibleName} from './model/text.ts';
import {App} from './ui/app.tsx';

function Failure({error}: {error: unknown}) {
  const known = error instanceof DocumentError;
  return (
    <main class="failure" id="failure">
      <h1>{known ? error.message : 'This report cannot be shown.'}</h1>
      <p>{known ? error.remedy
        : `The page failed: ${visibleName(String(error), 300)}. A current Firefox, Chromium or ` +
          'Safari is needed.'}</p>
    </main>
  );
}

async function start(): Promise<void> {
  const root = document.getElementById('report')!;
  const show = (page: ComponentChild) => {
    root.textContent = ''; // the words that stood here while loading
    render(page, root);
  };
  try {
    const block = document.getElementById('dwell-data');
    performance.mark('start');
    const decoded = await decodeDocument(block?.textContent ?? '', block?.dataset.encoding ?? '');
    block?.remove(); // megabytes of base64 that nobody needs any more
    performance.measure('unpack', 'start');
    performance.mark('unpacked');
    const model = buildModel(decoded);
    performance.measure('model', 'unpacked');
    document.title =
      `Dwell: ${visibleName(decoded.target, 80)} on ${visibleName(decoded.host, 80)}`;
    performance.mark('modelled');
    show(<App model={model} />);
    performance.measure('render', 'modelled');
    root.dataset.state = 'ready';
  } catch (error) {
    show(<Failure error={error} />);
    root.dataset.state = 'failed';
  }
}

void start();
