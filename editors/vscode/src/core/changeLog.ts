/** The changes a document went through, by version, so that an answer about an older version still finds its place. */

import { type Change, type Range, moveRange } from './positions';

interface Entry {
  readonly version: number;
  readonly changes: readonly Change[];
}

export class ChangeLog {
  private readonly entries: Entry[] = [];

  /** Note the changes that led to `version`. */
  add(version: number, changes: readonly Change[]): void {
    this.entries.push({ version, changes });
  }

  /** A range of `version` as it stands now; undefined when its text was touched since. */
  bring(range: Range, version: number): Range | undefined {
    let here: Range | undefined = range;
    for (const entry of this.entries) {
      for (const change of entry.version > version ? entry.changes : []) {
        here = here && moveRange(here, change);
      }
    }
    return here;
  }
}
