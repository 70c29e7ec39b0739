/** Whether a server that went down is started again: a few times, but not for ever. Pure. */

const MOST = 3;
const WITHIN_MS = 3 * 60_000;

export class Crashes {
  private times: number[] = [];

  /** Note one; whether to start again. `now` in milliseconds. */
  note(now: number): boolean {
    this.times = [...this.times.filter((time) => now - time < WITHIN_MS), now];
    return this.times.length <= MOST;
  }

  forget(): void {
    this.times = [];
  }
}
