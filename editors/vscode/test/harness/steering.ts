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
  /** What other commands of `lacuna` print: arguments → output, exit code and seconds for each line. */
  readonly commands?: Readonly<Record<string, { readonly out: string; readonly code?: number; readonly line_s?: number }>>;
}

export interface Seen {
  readonly event: 'start' | 'request' | 'cancelled';
  readonly pid: number;
  readonly id?: string;
  readonly type?: 'Fill' | 'Rewrite';
  readonly arguments?: readonly string[];
  readonly prefix?: string;
  readonly selection?: string;
  readonly instruction?: string;
  readonly seed?: number;
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

  /** Requests of one type so far. */
  requests(type: 'Fill' | 'Rewrite'): readonly Seen[] {
    return this.seen().filter((seen) => seen.event === 'request' && seen.type === type);
  }
}
