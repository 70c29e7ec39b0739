/** How a half-denoised text is laid over the lines it will replace. Pure. */

import { splitLines } from './positions';

/** One line of a draft: what is settled, and behind it what is still a guess. */
export interface DraftRow {
  readonly settled: string;
  readonly undecided: string;
}

/** Overlong rows would cost the editor more than they tell. */
const LONGEST_ROW = 300;

/**
 * A draft over `lines` lines of the document, one row each. The last row carries what does not fit, on one line.
 *
 * settled: how many code points of `text`, from its start, will not change any more.
 */
export function draftRows(text: string, settled: number, lines: number): DraftRow[] {
  const units = unitsOf(text, settled);
  const rows: DraftRow[] = [];
  let start = 0;
  for (const line of splitLines(text)) {
    const here = Math.min(Math.max(units - start, 0), line.length);
    rows.push({ settled: line.slice(0, here), undecided: line.slice(here) });
    start += line.length + lineEndAt(text, start + line.length);
  }
  const shown = rows.slice(0, Math.max(lines, 1));
  const rest = rows.slice(shown.length);
  const last = shown.pop() ?? { settled: '', undecided: '' };
  shown.push(cut(rest.reduce(joined, last)));
  while (shown.length < lines) {
    shown.push({ settled: '', undecided: '' });
  }
  return shown;
}

/** UTF-16 units of the first `points` code points of a text. */
export function unitsOf(text: string, points: number): number {
  let units = 0;
  for (let count = 0; count < points && units < text.length; count++) {
    units += (text.codePointAt(units) ?? 0) > 0xffff ? 2 : 1;
  }
  return units;
}

/** A row as the editor shows it: blanks that do not collapse, and tabs as wide as the editor's. */
export function shownText(text: string, tabSize: number): string {
  return text.replaceAll('\t', ' '.repeat(Math.max(tabSize, 1))).replaceAll(' ', '\u00a0');
}

function lineEndAt(text: string, at: number): number {
  return text.startsWith('\r\n', at) ? 2 : at < text.length ? 1 : 0;
}

function joined(row: DraftRow, full: DraftRow): DraftRow {
  const next = full.settled.trimStart()
    ? { ...full, settled: full.settled.trimStart() }
    : { settled: '', undecided: full.undecided.trimStart() };
  return row.undecided || !next.settled
    ? { settled: row.settled, undecided: `${row.undecided} ⏎ ${next.settled}${next.undecided}` }
    : { settled: `${row.settled} ⏎ ${next.settled}`, undecided: next.undecided };
}

function cut(row: DraftRow): DraftRow {
  const settled = row.settled.slice(0, LONGEST_ROW);
  return { settled, undecided: row.undecided.slice(0, LONGEST_ROW - settled.length) };
}
