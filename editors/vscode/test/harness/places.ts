/** Where the tests find what they run: all of it beside the extension, or named by the environment. */
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';

const require = createRequire(import.meta.url);

export const testFolder = path.resolve(import.meta.dirname, '..');
export const extensionFolder = path.resolve(testFolder, '..');
export const repository = path.resolve(extensionFolder, '../..');
export const probeFolder = path.join(testFolder, 'probe');
export const mediaFolder = path.join(extensionFolder, 'media');

/** The entry of code-server, started with this process's own Node (24, as it demands). */
export function codeServerEntry(): string {
  return path.join(path.dirname(require.resolve('code-server/package.json')), 'out/node/entry.js');
}

/** A Python that has Lacuna's dependencies: LACUNA_TEST_PYTHON, or the repository's own environment. */
export function python(): string {
  const named = process.env.LACUNA_TEST_PYTHON ?? path.join(repository, '.venv/bin/python');
  if (!existsSync(named)) {
    throw new Error(`no Python at ${named}: make the environment of CONTRIBUTING.md, or name one in LACUNA_TEST_PYTHON`);
  }
  return named;
}

/** Chromium's program: LACUNA_TEST_CHROMIUM, or the first of the usual names on the path. */
export function chromium(): string {
  const named = process.env.LACUNA_TEST_CHROMIUM;
  const names = ['chromium', 'chromium-browser', 'google-chrome'];
  const folders = (process.env.PATH ?? '').split(path.delimiter);
  const found = named ?? names.flatMap((name) => folders.map((folder) => path.join(folder, name))).find((file) => existsSync(file));
  if (found === undefined) throw new Error('no Chromium on the path: install it, or name one in LACUNA_TEST_CHROMIUM');
  return found;
}

/** The command that an editor is to start as its language server, steered by `folder`. */
export function steeredServer(folder: string): readonly string[] {
  return [python(), '-m', 'tests.fakes.steered_server', folder, 'lsp'];
}

/** What that command needs in its environment. */
export function pythonPath(): Readonly<Record<string, string>> {
  const paths = [repository, process.env.PYTHONPATH].filter((entry) => entry !== undefined && entry !== '');
  return { PYTHONPATH: paths.join(path.delimiter) };
}
