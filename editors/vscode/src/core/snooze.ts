/** Until when ghost text is held back. Pure: the time is given, in milliseconds. */

export class Snooze {
  private until = 0;

  begin(now: number, minutes: number): void {
    this.until = now + minutes * 60_000;
  }

  end(): void {
    this.until = 0;
  }

  /** Milliseconds left; 0 when awake, Infinity until somebody wakes it. */
  left(now: number): number {
    return Math.max(this.until - now, 0);
  }
}
