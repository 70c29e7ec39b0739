/** The parts of a proposed rewrite, each to be accepted or rejected alone. Pure. */

import { type Change, type Position, type Range, compare, contains, isEmpty, moveRange, splitLines } from './positions';

export interface Hunk {
  readonly id: number;
  readonly range: Range;
  readonly newText: string;
}

/** A replacement by offsets into a text, in UTF-16 units. */
export interface OffsetEdit {
  readonly id: number;
  readonly start: number;
  readonly end: number;
  readonly newText: string;
}

/** Where the text of a hunk stands in a proposal. */
export interface Placed {
  readonly id: number;
  readonly start: number;
  readonly end: number;
}

/** Hunks from the edits of an answer, in the order of the text. */
export function hunksFrom(edits: readonly { range: Range; newText: string }[]): Hunk[] {
  const ordered = [...edits].sort((a, b) => compare(a.range.start, b.range.start));
  return ordered.map((edit, id) => ({ id, range: edit.range, newText: edit.newText }));
}

/** The hunks whose text a change left alone, each where it stands now. */
export function followHunks(hunks: readonly Hunk[], change: Change): Hunk[] {
  return hunks.flatMap((hunk) => {
    const range = moveRange(hunk.range, change);
    return range ? [{ ...hunk, range }] : [];
  });
}

/** A text with edits applied, which are in its order and do not overlap, and where each new text stands. */
export function propose(text: string, edits: readonly OffsetEdit[]): { text: string; places: Placed[] } {
  const pieces: string[] = [];
  const places: Placed[] = [];
  let read = 0;
  let written = 0;
  for (const edit of edits) {
    const kept = text.slice(read, edit.start);
    pieces.push(kept, edit.newText);
    written += kept.length;
    places.push({ id: edit.id, start: written, end: written + edit.newText.length });
    written += edit.newText.length;
    read = edit.end;
  }
  pieces.push(text.slice(read));
  return { text: pieces.join(''), places };
}

/** The id of the hunk at an offset, else of the nearest one. */
export function nearestPlace(places: readonly Placed[], offset: number): number | undefined {
  const distance = (place: Placed) => Math.max(place.start - offset, offset - place.end, 0);
  return [...places].sort((a, b) => distance(a) - distance(b))[0]?.id;
}

/** The id of the hunk at a position, else of the one whose lines are nearest. */
export function nearestHunk(hunks: readonly Hunk[], position: Position): number | undefined {
  const at = hunks.find((hunk) => contains(hunk.range, position));
  const distance = ({ range }: Hunk) => Math.max(range.start.line - position.line, position.line - range.end.line, 0);
  return (at ?? [...hunks].sort((a, b) => distance(a) - distance(b))[0])?.id;
}

/** Whether a hunk brings lines that cannot be shown beside the old text. */
export function needsDiff(hunks: readonly Hunk[]): boolean {
  return hunks.some((hunk) => splitLines(hunk.newText).length > 1 && !rowsBeside(hunk).length);
}

/** `text` with the line ends of the document it goes into. */
export function withLineEnds(text: string, eol: '\n' | '\r\n'): string {
  return splitLines(text).join(eol);
}

/** A new line, without its indentation, and the line of the document that it is shown beside. */
export interface Row {
  readonly line: number;
  readonly text: string;
}

/** The new lines of a hunk that has as many as it replaces, of which there are several; nothing for any other. */
export function rowsBeside({ range, newText }: Hunk): Row[] {
  const lines = splitLines(newText);
  const areAlike = lines.length > 1 && lines.length === range.end.line - range.start.line + 1;
  return areAlike
    ? lines.map((line, index) => ({ line: range.start.line + index, text: shortened(line.trimStart()) }))
    : [];
}

function shortened(text: string): string {
  return text.length > LONGEST_PREVIEW ? `${text.slice(0, LONGEST_PREVIEW)}…` : text;
}

const LONGEST_PREVIEW = 160;
const BREAK = ' ⏎ ';

/** Where a new text is shown, on one line, and how. */
export interface Preview {
  /** On the line above, behind all of it: new lines stand where they will begin. */
  readonly isAbove: boolean;
  readonly text: string;
}

export function preview({ range, newText }: Hunk): Preview {
  const lines = splitLines(newText);
  const isAbove = isEmpty(range) && range.start.character === 0 && range.start.line > 0 && lines.length > 1;
  if (isAbove && lines[lines.length - 1] === '') {
    lines.pop();
  }
  const [first = '', ...rest] = isAbove ? ['', ...lines] : lines;
  const line = [first, ...rest.map((next) => next.trimStart())].join(BREAK);
  return { isAbove, text: shortened(line) };
}
