/**
 * `node test/run.ts [host|ui] [--update-screenshots] [--only PATTERN]`: the suites that need a workbench.
 *
 * Pictures go to a temporary folder, or to LACUNA_TEST_PICTURES; into `media/` only with --update-screenshots.
 */
import { spawnSync } from 'node:child_process';
import path from 'node:path';
import { parseArgs } from 'node:util';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { 'update-screenshots': { type: 'boolean', default: false }, only: { type: 'string' } },
});
const suites = positionals.length > 0 ? positionals : ['host', 'ui'];
const files = suites.map((suite) => path.join(import.meta.dirname, suite, 'main.test.ts'));
const only = values.only === undefined ? [] : [`--test-name-pattern=${values.only}`];
const { status } = spawnSync(process.execPath, ['--test', '--test-concurrency=1', '--test-reporter=spec', ...only, ...files], {
  stdio: 'inherit',
  env: { ...process.env, LACUNA_UPDATE_SCREENSHOTS: values['update-screenshots'] ? '1' : '0' },
});
process.exitCode = status ?? 1;
