/** One inline rewrite from its request to its last decided hunk: what is known of it, and how it follows the text. Pure. */

import { ChangeLog } from './changeLog';
import { type Hunk, followHunks, hunksFrom } from './hunks';
import { type Change, type Range, followRange } from './positions';

export type Phase = 'running' | 'review' | 'closed';

export interface Draft {
  readonly text: string;
  /** Code points at the start of `text` that are settled. */
  readonly settled: number;
}

export interface Answer {
  readonly version: number;
  readonly range: Range;
  readonly hunks: readonly { range: Range; newText: string }[];
}

export class RewriteSession {
  phase: Phase = 'running';
  /** The instructions so far: the first, and each that refined it. */
  readonly instructions: string[];
  seed = 0;
  /** How often it was asked for; an answer to an older asking is nobody's business any more. */
  asking = 0;
  draft: Draft | undefined;
  percent: number | undefined;
  hunks: Hunk[] = [];
  hunkCount = 0;
  /** Hunks that somebody's typing took away. */
  lost = 0;
  private log = new ChangeLog();

  constructor(
    readonly id: number,
    readonly uri: string,
    public range: Range,
    instruction: string,
  ) {
    this.instructions = [instruction];
  }

  get instruction(): string {
    return this.instructions.join('\n');
  }

  /** Begin to wait for an answer; its number. */
  ask(): number {
    this.phase = 'running';
    this.draft = undefined;
    this.percent = undefined;
    this.hunks = [];
    this.lost = 0;
    this.log = new ChangeLog();
    return ++this.asking;
  }

  /** Take an answer; whether there is anything to decide. */
  receive(answer: Answer): boolean {
    const edits = answer.hunks.flatMap((hunk) => {
      const range = this.log.bring(hunk.range, answer.version);
      return range ? [{ range, newText: hunk.newText }] : [];
    });
    this.lost = answer.hunks.length - edits.length;
    this.hunks = hunksFrom(edits);
    this.hunkCount = this.hunks.length;
    this.draft = undefined;
    this.percent = undefined;
    this.phase = this.hunks.length ? 'review' : 'closed';
    return this.phase === 'review';
  }

  /** The document changed. `own`: by accepting hunks of this rewrite, which are no longer among `hunks`. */
  follow(version: number, changes: readonly Change[], own = false): void {
    this.log.add(version, changes);
    for (const change of changes) {
      const before = this.hunks.length;
      this.hunks = followHunks(this.hunks, change);
      this.lost += before - this.hunks.length;
      this.range = followRange(this.range, change, own);
    }
    this.closeIfDecided();
  }

  /** Take hunks off the list, to be applied or dropped. */
  take(ids: readonly number[]): Hunk[] {
    const taken = this.hunks.filter((hunk) => ids.includes(hunk.id));
    this.hunks = this.hunks.filter((hunk) => !ids.includes(hunk.id));
    return taken;
  }

  /** Put back hunks that could not be applied. */
  putBack(hunks: readonly Hunk[]): void {
    this.hunks = [...this.hunks, ...hunks].sort((a, b) => a.id - b.id);
  }

  /** The end of a review is that nothing is left to decide. */
  closeIfDecided(): void {
    if (this.phase === 'review' && !this.hunks.length) {
      this.phase = 'closed';
    }
  }

  close(): void {
    this.phase = 'closed';
    this.hunks = [];
    this.draft = undefined;
  }
}
