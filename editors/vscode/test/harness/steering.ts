/** The other end of `tests/fakes/steered_server.py`: what the engine is to say, and what it was asked. */
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import path from 'node:path';

/** One reply of the scripted engine; see `replies_to` there. Drafts are [text, settled code points], each `draft_s` late. */
export interface Answer {
  readonly text?: string;
  readonly kind?: 'fill' | 'rewrite';
  readonly when?: string;
  readonly alternatives?: readonly string[];
  readonly further?: readonly string[];
  readonly drafts?: readonly (readonly [string, number])[];
  readonly delay_s?: number;
  readonly draft_s?: number;
  /** Never answers. */
  readonly hold?: boolean;
  readonly error?: readonly [kind: string, message: string, remedy: string];
}

export interface Script {
  readonly engine?: 'scripted' | 'process' | 'model';
  readonly environment?: Readonly<Record<string, string>>;
  readonly replies?: readonly Answer[];
  /** What other commands of `lacuna` do: arguments, or the first of them → see `steered_server.py`. */
  readonly commands?: Readonly<Record<string, Played>>;
}

export interface Played {
  readonly out?: string;
  readonly err?: string;
  readonly code?: number;
  /** Seconds for each line. */
  readonly line_s?: number;
  /** Writes the page of a trace where `--out` says. */
  readonly page?: boolean;
}

export interface Seen {
  readonly event: 'start' | 'request' | 'cancelled' | 'input';
  readonly pid: number;
  readonly id?: string;
  readonly type?: 'Fill' | 'Rewrite';
  readonly arguments?: readonly string[];
  readonly prefix?: string;
  readonly selection?: string;
  readonly instruction?: string;
  readonly seed?: number;
  /** What a command was given on its standard input. */
  readonly text?: string;
}

export class Steering {
  readonly folder: string;

  constructor(folder: string) {
    this.folder = folder;
    mkdirSync(folder, { recursive: true });
    this.set({});
  }

  set(script: Script): void {
    const file = path.join(this.folder, 'script.json');
    writeFileSync(`${file}.new`, JSON.stringify(script));
    renameSync(`${file}.new`, file);
  }

  /** Replies for a scripted engine, from the next request on. */
  reply(...replies: readonly Answer[]): void {
    this.set({ replies });
  }

  seen(): readonly Seen[] {
    const file = path.join(this.folder, 'seen.jsonl');
    if (!existsSync(file)) return [];
    const lines = readFileSync(file, 'utf8').split('\n').slice(0, -1);
    return lines.map((line) => JSON.parse(line) as Seen);
  }

  /** The servers started so far, oldest first. */
  servers(): readonly Seen[] {
    return this.seen().filter((seen) => seen.event === 'start' && seen.arguments?.[0] === 'lsp');
  }

  /** Calls of another command than `lsp` so far: their arguments. */
  calls(command: string): readonly (readonly string[])[] {
    const starts = this.seen().filter((seen) => seen.event === 'start' && seen.arguments?.[0] === command);
    return starts.map((seen) => seen.arguments ?? []);
  }

  /** Requests of one type so far. */
  requests(type: 'Fill' | 'Rewrite'): readonly Seen[] {
    return this.seen().filter((seen) => seen.event === 'request' && seen.type === type);
  }
}
