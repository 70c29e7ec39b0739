/** Starts the suite in `host/suite.ts` inside the extension host, as @vscode/test-electron would, without Electron. */
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import type * as esbuild from 'esbuild';
import { Chromium } from '../harness/browser.ts';
import { CodeServer } from '../harness/code_server.ts';
import { extensionFolder, probeFolder, pythonPath, steeredServer } from '../harness/places.ts';
import { Steering } from '../harness/steering.ts';

const LIMIT_MS = 240_000;

test('in the extension host', { timeout: LIMIT_MS }, async (context) => {
  const root = mkdtempSync(path.join(tmpdir(), 'lacuna-host-'));
  const workspace = path.join(root, 'project');
  mkdirSync(workspace);
  const steering = new Steering(path.join(root, 'steering'));
  const suite = await bundled(root);
  const chromium = await Chromium.start();
  let server: CodeServer | undefined;
  try {
    server = await CodeServer.start({
      root,
      extensions: { 'lacuna-probe': probeFolder },
      machineSettings: { 'lacuna.server.command': steeredServer(steering.folder) },
      environment: { ...pythonPath(), LACUNA_HOME: path.join(root, 'home'), LACUNA_STEERING: steering.folder },
      development: true,
    });
    const lines: string[] = [];
    const code = await runInHost(chromium, server, workspace, suite, (line) => lines.push(line));
    for (const line of lines) context.diagnostic(line);
    assert.equal(code, 0, lines.join('\n'));
    assert.ok(lines.some((line) => line.startsWith('ok ')), 'no test ran');
  } finally {
    await chromium.stop();
    await server?.stop();
    if (process.env.LACUNA_TEST_KEEP === undefined) rmSync(root, { recursive: true, force: true });
  }
});

async function bundled(root: string): Promise<string> {
  const builder = createRequire(path.join(extensionFolder, 'package.json'))('esbuild') as typeof esbuild;
  const outfile = path.join(root, 'suite.js');
  const entry = path.join(import.meta.dirname, 'suite.ts');
  await builder.build({ entryPoints: [entry], outfile, bundle: true, platform: 'node', format: 'cjs', external: ['vscode'], logLevel: 'warning' });
  return outfile;
}

/** The suite's exit code, as the workbench reports it; its lines go to `hear`. */
async function runInHost(chromium: Chromium, server: CodeServer, workspace: string, suite: string, hear: (line: string) => void): Promise<number> {
  const page = await chromium.window();
  const remote = (file: string): string => `vscode-remote://${new URL(server.url).host}${file}`;
  const payload = [['extensionDevelopmentPath', remote(extensionFolder)], ['extensionTestsPath', remote(suite)]];
  const { promise, resolve } = Promise.withResolvers<number>();
  await page.exposeFunction('codeAutomationLog', (_type: string, parts: readonly unknown[]) => {
    for (const line of parts.join(' ').split('\n')) if (/^(ok|not ok|#) /.test(line)) hear(line);
  });
  await page.exposeFunction('codeAutomationExit', resolve);
  const query = `folder=${encodeURIComponent(workspace)}&payload=${encodeURIComponent(JSON.stringify(payload))}`;
  await page.goto(`${server.url}/?${query}`);
  return promise;
}
