// What a box of the flame graph can be called. Frames that show the same name, module and kind
// share one label, whatever their addresses: that is what merges stacks into a graph. Labels of
// groups (a process, a thread, a cause) and of time that has no stack come from here too.
//
// Label numbers depend on the document alone, so that they may stand in the page's address.
import type {ProfileDocument} from './document.ts';

export type LabelKind =
  | 'all' | 'user' | 'kernel' | 'placeholder'  // a frame
  | 'process' | 'thread' | 'cause' | 'class'   // a group
  | 'running' | 'lost' | 'filtered';           // time without a stack

export class LabelTable {
  readonly text: string[] = [];
  readonly kind: LabelKind[] = [];
  readonly frame: number[] = []; // the first frame with this label, -1 for groups
  private readonly numbers = new Map<string, number>();

  // The number of a label, made on first sight. `scope` keeps equal texts of one kind apart.
  number(kind: LabelKind, text: string, scope = '', frame = -1): number {
    const key = `${kind}\0${scope}\0${text}`;
    const known = this.numbers.get(key);
    if (known !== undefined) return known;
    const made = this.text.length;
    this.numbers.set(key, made);
    this.text.push(text);
    this.kind.push(kind);
    this.frame.push(frame);
    return made;
  }

  get length(): number {
    return this.text.length;
  }
}

// For each frame of the document, its label.
export function labelFrames(document: ProfileDocument, labels: LabelTable): Int32Array {
  const labelOf = new Int32Array(document.frames.length);
  document.frames.forEach((frame, i) => {
    labelOf[i] = labels.number(frame.kind, frame.name, String(frame.module), i);
  });
  return labelOf;
}
