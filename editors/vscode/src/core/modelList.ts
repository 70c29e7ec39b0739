/** What `lacuna models list --json` and `lacuna models pull NAME --json` print. Pure. */

import type { Translate } from './translate';

export interface Model {
  readonly name: string;
  readonly isDefault: boolean;
  readonly isHere: boolean;
  readonly status: string;
  /** Bytes; null where nobody knows yet. */
  readonly size: number | null;
  readonly licence: string;
  readonly description: string;
}

/** Raises an Error for a person when the text is no such list. */
export function parseModels(text: string, t: Translate): Model[] {
  const raw = parsed(text);
  const rows = isRecord(raw) ? raw['models'] : undefined;
  if (!Array.isArray(rows)) {
    throw new Error(t('The program "lacuna" answered something else than expected: is it a newer version?'));
  }
  return rows.filter(isRecord).flatMap((row) => {
    const status = textOf(row['status']);
    const size = row['size'];
    const model = {
      name: textOf(row['name']),
      isDefault: row['default'] === true,
      isHere: status === 'here' || status === 'unchecked',
      status,
      size: typeof size === 'number' ? size : null,
      licence: textOf(row['licence']),
      description: textOf(row['description']),
    };
    return model.name && row['loadable'] !== false ? [model] : [];
  });
}

export type PullEvent =
  | { readonly event: 'progress'; readonly stage: string; readonly done: number; readonly total: number }
  | { readonly event: 'done'; readonly path: string }
  | { readonly event: 'error'; readonly message: string; readonly remedy: string };

/** One line of a pull; undefined when it is something else. */
export function parsePullLine(line: string): PullEvent | undefined {
  const raw = parsed(line);
  if (!isRecord(raw)) {
    return undefined;
  }
  switch (raw['event']) {
    case 'progress':
      return {
        event: 'progress',
        stage: textOf(raw['stage']),
        done: Number(raw['done']) || 0,
        total: Number(raw['total']) || 0,
      };
    case 'done':
      return { event: 'done', path: textOf(raw['path']) };
    case 'error':
      return { event: 'error', message: textOf(raw['message']), remedy: textOf(raw['remedy']) };
    default:
      return undefined;
  }
}

/** `491 MB`, `1.6 GB`. */
export function shownSize(bytes: number): string {
  return bytes < 999.5e6 ? `${Math.round(bytes / 1e6)} MB` : `${(bytes / 1e9).toFixed(1)} GB`;
}

function parsed(line: string): unknown {
  try {
    return JSON.parse(line) as unknown;
  } catch {
    return undefined;
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
