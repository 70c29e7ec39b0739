/** Which of several rewrites a command without an argument means. Pure. */

import { type Position, type Range, contains } from './positions';

interface Candidate {
  readonly id: number;
  readonly range: Range;
}

/** The one around the cursor, else the one whose lines are nearest to it; undefined when there is none. */
export function chooseSession<T extends Candidate>(sessions: readonly T[], cursor: Position): T | undefined {
  const around = sessions.filter((session) => contains(session.range, cursor));
  if (around.length) {
    return around[around.length - 1];
  }
  const distance = ({ range }: T) => Math.max(range.start.line - cursor.line, cursor.line - range.end.line, 0);
  return [...sessions].sort((a, b) => distance(a) - distance(b))[0];
}
