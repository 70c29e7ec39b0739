/** The answer of `lacuna doctor --json` as Markdown. Pure. */

import type { Translate } from './translate';

interface Check {
  readonly subject: string;
  readonly verdict: string;
  readonly finding: string;
  readonly remedy: string;
}

const MARKS: Record<string, string> = { ok: '✓', warning: '!', fault: '✗' };

/** Raises an Error when the text is no such answer. */
export function doctorReport(json: string, t: Translate): string {
  const raw = parsed(json);
  if (!Array.isArray(raw?.checks)) {
    throw new Error(t('The program "lacuna" answered something else than expected: is it a newer version?'));
  }
  const verdict =
    raw.ok === true ? t('Everything that Lacuna needs is here.') : t('Something stops Lacuna from working.');
  const checks = raw.checks.map((check) => readCheck(check));
  return doctorPage([verdict, '', ...checks.flatMap((check) => lines(check, t))].join('\n'), t);
}

/** Markdown under the heading of the page. */
export function doctorPage(text: string, t: Translate): string {
  return `# ${t('Lacuna: Doctor')}\n\n${text.trimEnd()}\n`;
}

function parsed(json: string): { readonly ok?: unknown; readonly checks?: unknown } | undefined {
  try {
    return JSON.parse(json) as { ok?: unknown; checks?: unknown };
  } catch {
    return undefined;
  }
}

function readCheck(raw: unknown): Check {
  const fields = (typeof raw === 'object' && raw !== null ? raw : {}) as Record<string, unknown>;
  const text = (...names: string[]) => {
    const found = names.map((name) => fields[name]).find((value) => typeof value === 'string');
    return typeof found === 'string' ? found : '';
  };
  return {
    subject: text('subject', 'name'),
    verdict: text('verdict'),
    finding: text('finding', 'message'),
    remedy: text('remedy'),
  };
}

function lines({ subject, verdict, finding, remedy }: Check, t: Translate): string[] {
  const first = `* ${MARKS[verdict] ?? '·'} **${subject}**: ${finding}`;
  return remedy ? [first, `  * ${t('What to do: {0}', remedy)}`] : [first];
}
