// Writes l10n/bundle.l10n.json: every message of the sources, which is its own key.
import { readFile, readdir, writeFile } from 'node:fs/promises';
import { pathToFileURL } from 'node:url';

const root = new URL('..', import.meta.url);
const MESSAGE = /\b(?:vscode\.l10n\.t|t)\(\s*(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)")/g;

export async function messages() {
  const files = (await readdir(new URL('src/', root), { recursive: true })).filter((name) => name.endsWith('.ts'));
  const found = new Set();
  for (const file of files) {
    const text = await readFile(new URL(`src/${file}`, root), 'utf8');
    for (const [, single, double] of text.matchAll(MESSAGE)) {
      found.add((single ?? double).replace(/\\(.)/g, '$1'));
    }
  }
  const ordered = [...found].sort();
  return `${JSON.stringify(Object.fromEntries(ordered.map((message) => [message, message])), null, 2)}\n`;
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  await writeFile(new URL('l10n/bundle.l10n.json', root), await messages());
}
