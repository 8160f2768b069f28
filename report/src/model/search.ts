// Search over labels: plain text (any case) or a regular expression. Each label is tested once per
// search, however many boxes carry it.
import type {FlameTree} from './flame_tree.ts';
import type {Model} from './model.ts';

// Only the start of a name is searched: names may be a megabyte long and the search runs at every
// key press.
export const kSearchedNameLength = 4096;

export interface Search {
  matches: Uint8Array; // per label
  error: string;       // why the regular expression is none, else ""
}

export function searchLabels(model: Model, text: string, regex: boolean): Search | null {
  if (text === '') return null;
  const {labels} = model;
  const matches = new Uint8Array(labels.length);
  let test: (name: string) => boolean;
  if (regex) {
    let pattern: RegExp;
    try {
      pattern = new RegExp(text, 'iu');
    } catch (error) {
      return {matches, error: error instanceof Error ? error.message : String(error)};
    }
    test = (name) => pattern.test(name);
  } else {
    const wanted = text.toLowerCase();
    test = (name) => name.toLowerCase().includes(wanted);
  }
  for (let label = 1; label < labels.length; ++label) {
    if (test(labels.text[label]!.slice(0, kSearchedNameLength))) matches[label] = 1;
  }
  return {matches, error: ''};
}

// Time in or below boxes that match; a match inside a match counts once.
export function matchedTime(tree: FlameTree, matches: Uint8Array): number {
  const covered = new Uint8Array(tree.length);
  let ns = 0;
  for (let n = 0; n < tree.length; ++n) {
    const above = n > 0 && covered[tree.parent[n]!] === 1;
    const own = matches[tree.label[n]!] === 1;
    if (own && !above) ns += tree.total[n]!;
    if (own || above) covered[n] = 1;
  }
  return ns;
}

// Per context: does it or one above it match? A row whose context is marked belongs to the search.
export function matchedContexts(model: Model, matches: Uint8Array): Uint8Array {
  const {contexts} = model;
  const marked = new Uint8Array(contexts.length);
  for (let c = 0; c < contexts.length; ++c) {
    const above = c > 0 && marked[contexts.parent[c]!] === 1;
    if (above || matches[contexts.label[c]!] === 1) marked[c] = 1;
  }
  return marked;
}
