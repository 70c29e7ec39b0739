/** What the manifest, the texts and the sources say of each other. */

import assert from 'node:assert/strict';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

interface Manifest {
  readonly engines: { vscode: string };
  readonly devDependencies: Record<string, string>;
  readonly contributes: {
    readonly commands: { command: string }[];
    readonly keybindings: { command: string; key: string; when: string }[];
    readonly menus: Record<string, { command: string }[]>;
    readonly configuration: { properties: Record<string, { scope?: string }> }[];
    readonly walkthroughs: { steps: { media: { markdown: string } }[] }[];
  };
  readonly capabilities: { untrustedWorkspaces: { restrictedConfigurations: string[] } };
}

const read = (name: string) => readFileSync(name, 'utf8');
const manifest = JSON.parse(read('package.json')) as Manifest;
const texts = JSON.parse(read('package.nls.json')) as Record<string, string>;
const sources = readdirSync('src', { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.ts'))
  .map((name) => read(join('src', name)));
const commands = manifest.contributes.commands.map(({ command }) => command);

test('every text of the manifest is there, and none is left over', () => {
  const used = [...read('package.json').matchAll(/"%([^%"]+)%"/g)].map(([, key]) => key ?? '');
  assert.deepEqual([...new Set(used)].sort(), Object.keys(texts).sort());
});

test('every message of the sources is in the bundle', () => {
  const message = /\b(?:vscode\.l10n\.t|t)\(\s*(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)")/g;
  const found = sources.flatMap((text) => [...text.matchAll(message)].map(([, one, two]) => one ?? two ?? ''));
  const bundle = JSON.parse(read('l10n/bundle.l10n.json')) as Record<string, string>;
  assert.ok(found.length > 50);
  assert.deepEqual([...new Set(found)].sort(), Object.keys(bundle).sort(), 'run `npm run l10n`');
});

test('no message is put together where it is translated', () => {
  const calls = sources.flatMap((text) => [...text.matchAll(/\bl10n\.t\(\s*(.)/g)].map(([, first]) => first));
  assert.deepEqual(
    [...new Set(calls)].sort(),
    ['"', "'"].filter((quote) => calls.includes(quote)),
  );
});

test('every command is registered, and every menu and key names one', () => {
  const all = sources.join('\n');
  for (const command of commands) {
    assert.ok(all.includes(`'${command}'`), command);
  }
  const named = [...manifest.contributes.keybindings, ...Object.values(manifest.contributes.menus).flat()];
  for (const { command } of named) {
    assert.ok(commands.includes(command) || command.startsWith('editor.action.inlineSuggest.'), command);
  }
});

test('no key is taken from typing: each has a modifier, but Escape while a rewrite runs', () => {
  for (const { key, when } of manifest.contributes.keybindings) {
    assert.ok(when.includes('lacuna.'), `${key} works where Lacuna has nothing to say`);
    assert.ok(key.startsWith('ctrl+alt+') || (key === 'escape' && when.includes('lacuna.rewrite == running')), key);
    assert.doesNotMatch(key, /tab/);
  }
});

test('what a workspace says about programs and paths needs trust, and belongs to a machine', () => {
  const restricted = manifest.capabilities.untrustedWorkspaces.restrictedConfigurations;
  const [own] = manifest.contributes.configuration;
  for (const [name, { scope }] of Object.entries(own?.properties ?? {})) {
    if (name.startsWith('lacuna.server.')) {
      assert.ok(restricted.includes(name), name);
      assert.equal(scope, 'machine-overridable', name);
    }
  }
});

test('the types are those of the oldest editor that is promised', () => {
  assert.equal(manifest.engines.vscode, `^${manifest.devDependencies['@types/vscode'] ?? ''}`);
});

test('every page of the walkthrough is there', () => {
  const pages = manifest.contributes.walkthroughs.flatMap(({ steps }) => steps.map(({ media }) => media.markdown));
  assert.deepEqual(
    pages.filter((page) => !existsSync(page)),
    [],
  );
});

test('the lock file names no registry, and nothing here reports home', () => {
  assert.doesNotMatch(read('package-lock.json'), /"resolved"|https?:\/\/registry/);
  assert.ok(sources.every((text) => !/https?:\/\/|createTelemetryLogger|node:https?'/.test(text)));
});
