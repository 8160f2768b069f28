// From the text of the page's data block (base64 of gzip of JSON) to a checked document. Every way
// in which the block can be damaged ends in a DocumentError with a sentence for the reader.
import {checkDocument, DocumentError, type ProfileDocument} from './document.ts';

// A block that unpacks to more than this is refused: browsers cap the length of one string at 2^29.
const kMaxDocumentBytes = 500 * 1024 * 1024;

const kRemedy = 'Write the report again from the recording (dwell report --html), or copy the ' +
  'file again: it may have been cut short on its way.';

function bytesOfBase64(text: string): Uint8Array<ArrayBuffer> {
  let binary: string;
  try {
    binary = atob(text);
  } catch {
    throw new DocumentError('The data in this file is damaged: it is not base64.', kRemedy);
  }
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; ++i) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

async function gunzip(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  const reader =
    new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip')).getReader();
  const decoder = new TextDecoder();
  let text = '';
  let length = 0;
  for (;;) {
    const {done, value} = await reader.read();
    if (done) return text + decoder.decode();
    length += value.length;
    if (length > kMaxDocumentBytes) {
      await reader.cancel();
      throw new DocumentError(
        'This profile is larger than 500 MiB: too large for a browser.',
        'Record with a longer minimum duration (--min) or fewer threads (-p), or read it with ' +
        'dwell report.');
    }
    text += decoder.decode(value, {stream: true});
  }
}

export async function decodeDocument(block: string, encoding: string): Promise<ProfileDocument> {
  const text = block.trim();
  if (text === '' || text.startsWith('@')) {
    throw new DocumentError(
      'This page carries no data.',
      'It is the empty template: dwell report --html writes a page with a recording in it.');
  }
  if (encoding !== 'gzip-base64') {
    throw new DocumentError(`This page does not know the encoding "${encoding.slice(0, 80)}".`,
                            'Write the page and its data with the same Dwell.');
  }
  const bytes = bytesOfBase64(text);
  let json: string;
  try {
    json = await gunzip(bytes);
  } catch (error) {
    if (error instanceof DocumentError) throw error;
    throw new DocumentError('The data in this file is damaged: it does not unpack (gzip).',
                            kRemedy);
  }
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    throw new DocumentError('The data in this file is damaged: it is not JSON.', kRemedy);
  }
  return checkDocument(value);
}
