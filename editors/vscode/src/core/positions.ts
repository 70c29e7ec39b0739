/** Places in a text as LSP and VS Code count them (UTF-16 units), and how they move when the text changes. Pure. */

export interface Position {
  readonly line: number;
  readonly character: number;
}

export interface Range {
  readonly start: Position;
  readonly end: Position;
}

/** `text` in place of `range`, as in LSP's `TextDocumentContentChangeEvent`; several are applied one after another. */
export interface Change {
  readonly range: Range;
  readonly text: string;
}

export function compare(a: Position, b: Position): number {
  return a.line - b.line || a.character - b.character;
}

export function isEmpty(range: Range): boolean {
  return compare(range.start, range.end) === 0;
}

export function contains(range: Range, position: Position): boolean {
  return compare(range.start, position) <= 0 && compare(position, range.end) <= 0;
}

/** Whether two ranges have a line in common; one that ends where a line starts has nothing of that line. */
export function shareLines(a: Range, b: Range): boolean {
  return a.start.line <= lastLine(b) && b.start.line <= lastLine(a);
}

function lastLine({ start, end }: Range): number {
  return end.character === 0 && end.line > start.line ? end.line - 1 : end.line;
}

export function splitLines(text: string): string[] {
  return text.split(/\r\n|\r|\n/);
}

/** Where the text of a change ends once it is in. */
export function endOf(change: Change): Position {
  const lines = splitLines(change.text);
  const last = lines[lines.length - 1] ?? '';
  const { line, character } = change.range.start;
  return lines.length === 1
    ? { line, character: character + last.length }
    : { line: line + lines.length - 1, character: last.length };
}

/** A position at or behind the end of a change, after it. */
function moved(position: Position, change: Change): Position {
  const end = endOf(change);
  if (position.line !== change.range.end.line) {
    return { line: position.line + end.line - change.range.end.line, character: position.character };
  }
  return { line: end.line, character: end.character + position.character - change.range.end.character };
}

/** A range after a change outside of it; undefined when the change touched its text. */
export function moveRange(range: Range, change: Change): Range | undefined {
  if (compare(change.range.end, range.start) <= 0) {
    return { start: moved(range.start, change), end: moved(range.end, change) };
  }
  return compare(change.range.start, range.end) >= 0 ? range : undefined;
}

/**
 * A range after any change: what is written inside belongs to it, what is written across its edge cuts it.
 * `grows`: text inserted exactly at its edges belongs to it, too.
 */
export function followRange(range: Range, change: Change, grows = false): Range {
  const isBefore = compare(change.range.end, range.start) <= 0;
  const atStart = grows && compare(change.range.start, range.start) === 0;
  const start = isBefore && !atStart ? moved(range.start, change) : lesser(range.start, change.range.start);
  const behind = compare(change.range.start, range.end);
  if (behind > 0 || (behind === 0 && !grows && !(isBefore && !atStart))) {
    return { start, end: range.end };
  }
  const end = compare(change.range.end, range.end) <= 0 ? moved(range.end, change) : endOf(change);
  return { start, end };
}

function lesser(a: Position, b: Position): Position {
  return compare(a, b) <= 0 ? a : b;
}
