import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Crashes } from '../src/core/crashes';
import { switched } from '../src/core/languageSwitch';
import { Snooze } from '../src/core/snooze';
import { type Known, statusView } from '../src/core/statusView';

const t = (message: string, ...values: (string | number)[]) =>
  values.reduce<string>((text, value, index) => text.replace(`{${index}}`, String(value)), message);
const ready: Known = {
  server: 'running',
  remedy: '',
  engine: { state: 'ready', message: '', remedy: '', percent: null, model: 'small' },
  snoozedFor: 0,
  disabledLanguage: '',
  rewrites: 0,
};
const engine = (changes: Partial<Known['engine']>): Known => ({ ...ready, engine: { ...ready.engine, ...changes } });

test('loading shows how far it is', () => {
  const view = statusView(engine({ state: 'loading', percent: 40.4, message: 'Downloading' }), t);
  assert.equal(view.text, '$(loading~spin) Lacuna 40 %');
  assert.match(view.tooltip, /Downloading/);
});

test('a failure is an error with what to do about it, also while snoozed', () => {
  const failed = { ...engine({ state: 'failed', message: 'No model.', remedy: 'Pull it.' }), snoozedFor: Infinity };
  const view = statusView(failed, t);
  assert.equal(view.severity, 'error');
  assert.equal(view.tooltip, 'No model.\nPull it.');
});

test('a server that is missing or crashed says so before anything else', () => {
  assert.equal(statusView({ ...ready, server: 'missing', remedy: 'Install it.' }, t).severity, 'warning');
  assert.equal(statusView({ ...ready, server: 'crashed', remedy: 'Look.', snoozedFor: 5 }, t).severity, 'error');
});

test('busy spins and ready does not', () => {
  assert.match(statusView(engine({ state: 'busy' }), t).text, /spin/);
  assert.doesNotMatch(statusView(ready, t).text, /spin/);
  assert.match(statusView({ ...ready, rewrites: 2 }, t).tooltip, /2/);
});

test('snoozing and a language turned off are told', () => {
  assert.match(statusView({ ...ready, snoozedFor: 61_000 }, t).tooltip, /2 min/);
  assert.match(statusView({ ...ready, snoozedFor: Infinity }, t).tooltip, /until you wake it/);
  assert.match(statusView({ ...ready, disabledLanguage: 'python' }, t).tooltip, /python/);
});

test('each state of server and engine has a face of its own', () => {
  const servers = (['missing', 'stopped', 'starting', 'crashed'] as const).map((server) => ({ ...ready, server }));
  const engines = (['idle', 'loading', 'ready', 'busy', 'failed'] as const).map((state) => engine({ state }));
  const faces = [...servers, ...engines].map((known) => JSON.stringify(statusView(known, t)));
  assert.equal(new Set(faces).size, faces.length);
});

test('snoozing ends by itself, or by hand', () => {
  const snooze = new Snooze();
  assert.equal(snooze.left(1000), 0);
  snooze.begin(1000, 5);
  assert.equal(snooze.left(1000), 300_000);
  assert.equal(snooze.left(301_000), 0);
  snooze.begin(1000, Infinity);
  assert.equal(snooze.left(9e15), Infinity);
  snooze.end();
  assert.equal(snooze.left(1000), 0);
});

test('a language is switched off and on again', () => {
  const off = switched(['rust'], 'python');
  assert.deepEqual(off, ['python', 'rust']);
  assert.deepEqual(switched(off, 'python'), ['rust']);
});

test('a server that keeps crashing is started three times and no more, unless it held for a while', () => {
  const crashes = new Crashes();
  assert.deepEqual(
    [0, 1, 2, 3].map((time) => crashes.note(time)),
    [true, true, true, false],
  );
  assert.equal(crashes.note(1_000_000), true);
  crashes.forget();
  assert.equal(crashes.note(1_000_001), true);
});
