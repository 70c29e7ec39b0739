// Bundles the extension into dist/, or with --tests the unit tests into out/unit/.
import { rmSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { context, build } from 'esbuild';

const root = fileURLToPath(new URL('..', import.meta.url));
const production = process.argv.includes('--production');
const common = { absWorkingDir: root, bundle: true, platform: 'node', target: 'node20', logLevel: 'warning' };
const extension = {
  ...common,
  entryPoints: ['src/extension.ts'],
  outfile: 'dist/extension.js',
  format: 'cjs',
  external: ['vscode'],
  minify: production,
  sourcemap: !production,
};

if (process.argv.includes('--tests')) {
  rmSync(`${root}out/unit`, { recursive: true, force: true });
  const tests = (await readdir(`${root}unit`)).filter((name) => name.endsWith('.test.ts'));
  await build({
    ...common,
    entryPoints: tests.map((name) => `unit/${name}`),
    outdir: 'out/unit',
    outExtension: { '.js': '.mjs' },
    format: 'esm',
    // The compiler, by which a test reads the sources, and the protocol, which it compares with, are what they are.
    external: ['typescript', 'vscode-languageserver-protocol'],
    sourcemap: 'inline',
  });
} else if (process.argv.includes('--watch')) {
  await (await context(extension)).watch();
} else {
  rmSync(`${root}dist`, { recursive: true, force: true });
  await build(extension);
}
