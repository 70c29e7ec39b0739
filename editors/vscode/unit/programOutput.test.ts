import assert from 'node:assert/strict';
import { test } from 'node:test';
import { doctorReport } from '../src/core/doctorReport';
import { LineReader } from '../src/core/lineReader';
import { parseModels, parsePullLine, shownSize } from '../src/core/modelList';
import { serverSettings } from '../src/core/serverSettings';

const t = (message: string, ...values: (string | number)[]) => message.replace('{0}', String(values[0] ?? ''));

test('models: what is here, what it costs, and nothing that this version cannot load', () => {
  const models = parseModels(
    JSON.stringify({
      models: [
        { name: 'small', status: 'here', default: true, size: 491e6, licence: 'Apache-2.0', description: 'd' },
        { name: 'big', status: 'not here', size: null },
        { name: 'later', status: 'later', loadable: false },
        { status: 'here' },
      ],
    }),
    t,
  );
  assert.deepEqual(
    models.map(({ name, isHere, isDefault, size }) => [name, isHere, isDefault, size]),
    [
      ['small', true, true, 491e6],
      ['big', false, false, null],
    ],
  );
});

test('models: something else than a list is an error', () => {
  assert.throws(() => parseModels('{"error": 1}', t));
  assert.throws(() => parseModels('no JSON', t), /newer version/);
});

test('pull: each kind of line, and nothing of others', () => {
  assert.deepEqual(
    parsePullLine('{"event": "progress", "stage": "downloading", "message": "", "done": 5, "total": 10}'),
    {
      event: 'progress',
      stage: 'downloading',
      done: 5,
      total: 10,
    },
  );
  assert.deepEqual(parsePullLine('{"event": "done", "path": "/m"}'), { event: 'done', path: '/m' });
  assert.deepEqual(parsePullLine('{"event": "error", "message": "m", "remedy": "r"}'), {
    event: 'error',
    message: 'm',
    remedy: 'r',
  });
  assert.equal(parsePullLine('Downloading…'), undefined);
  assert.equal(parsePullLine('{"event": "new"}'), undefined);
});

test('sizes are short', () => {
  assert.deepEqual([491_400_000, 999_600_000, 18e9].map(shownSize), ['491 MB', '1.0 GB', '18.0 GB']);
});

test('lines come whole, however they were written', () => {
  const heard: string[] = [];
  const reader = new LineReader((line) => heard.push(line));
  ['a', 'b\r', '\nc\n\nd'].forEach((piece) => {
    reader.push(piece);
  });
  assert.deepEqual(heard, ['ab', 'c', '']);
  reader.end();
  reader.end();
  assert.deepEqual(heard, ['ab', 'c', '', 'd']);
});

test('doctor: a verdict, and under each fault what to do', () => {
  const checks = [
    { subject: 'python', verdict: 'ok', finding: '3.11', remedy: '' },
    { subject: 'model', verdict: 'fault', finding: 'not here', remedy: 'pull it' },
  ];
  const report = doctorReport(JSON.stringify({ ok: false, checks }), t);
  assert.match(report, /Something stops/);
  assert.match(report, /\* ✓ \*\*python\*\*: 3\.11\n/);
  assert.match(report, /\* ✗ \*\*model\*\*: not here\n {2}\* What to do: pull it/);
  assert.throws(() => doctorReport('{}', t), /newer version/);
  assert.throws(() => doctorReport('Traceback', t), /newer version/);
});

test('the server is told its own settings and none of the extension', () => {
  const section = { enable: true, server: { command: [] }, review: {}, trace: {}, inlineCompletion: { enable: true } };
  assert.deepEqual(serverSettings(section), { enable: true, inlineCompletion: { enable: true } });
  assert.equal(serverSettings(null), null);
  assert.deepEqual(serverSettings([1]), [1]);
});
