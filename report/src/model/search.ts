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
  for (let label = 0; label < labels.length; ++label) {
    if (label === model.allLabel) continue;
    if (test(labels.text[label]!.slice(0, kSearchedNameLength))) matches[label] = 1;
  }
  return {matches, error: ''};
}

// The rows of the graph that have a matching box on their path; a match above a match counts once.
export function matchedRows(tree: FlameTree, matches: Uint8Array): Int32Array {
  const {paths} = tree.model;
  const pathMatches = new Uint8Array(paths.rank.length);
  for (let p = 0; p < pathMatches.length; ++p) {
    for (let i = paths.start[p]!; i < paths.start[p + 1]!; ++i) {
      if (matches[paths.labels[i]!] === 1) pathMatches[p] = 1;
    }
  }
  return tree.order.filter((row) => pathMatches[tree.model.rows.path[row]!] === 1 ||
    tree.groupMatches(row, matches));
}
