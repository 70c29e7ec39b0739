/** Whole lines out of the pieces in which a process writes. */
export class LineReader {
  private rest = '';

  constructor(private readonly hear: (line: string) => void) {}

  push(piece: string): void {
    const lines = (this.rest + piece).split(/\r?\n/);
    this.rest = lines.pop() ?? '';
    lines.forEach(this.hear);
  }

  /** What stood behind the last line end. */
  end(): void {
    if (this.rest) {
      this.hear(this.rest);
      this.rest = '';
    }
  }
}
