import assert from 'node:assert/strict';
import { test } from 'node:test';
import { installCommand } from '../src/core/installCommand';
import { type Places, candidates, ownVenv } from '../src/core/serverSearch';

const places: Places = {
  platform: 'linux',
  isTrusted: true,
  command: [],
  interpreter: '',
  selectedInterpreter: '/envs/chosen/bin/python',
  folders: ['/work/app'],
  path: '/usr/local/bin:/usr/bin',
  home: '/home/me',
};
const files = (changes: Partial<Places> = {}) => candidates({ ...places, ...changes }).map(({ file }) => file);

test('the chosen environment goes first, then those of the workspace, the path, and the own one', () => {
  assert.deepEqual(files(), [
    '/envs/chosen/bin/lacuna',
    '/work/app/.venv/bin/lacuna',
    '/work/app/venv/bin/lacuna',
    '/work/app/env/bin/lacuna',
    '/usr/local/bin/lacuna',
    '/usr/bin/lacuna',
    '/home/me/.lacuna/venv/bin/lacuna',
  ]);
});

test('a workspace that nobody trusts does not say what is run', () => {
  assert.deepEqual(files({ isTrusted: false }), [
    '/usr/local/bin/lacuna',
    '/usr/bin/lacuna',
    '/home/me/.lacuna/venv/bin/lacuna',
  ]);
});

test('a relative or empty folder of the path is none: it would be one of the workspace', () => {
  assert.deepEqual(files({ selectedInterpreter: '', folders: [], path: '.::bin:/usr/bin' }), [
    '/usr/bin/lacuna',
    '/home/me/.lacuna/venv/bin/lacuna',
  ]);
});

test('a configured command is the only candidate, and tells how to call the program', () => {
  const command = ['/x/python', '-m', 'lacuna', 'lsp', '--log-level', 'INFO'];
  assert.deepEqual(candidates({ ...places, command }), [
    { source: 'command', server: command, cli: ['/x/python', '-m', 'lacuna'], file: undefined },
  ]);
});

test('a configured command that is no `lsp` does not tell how to call the program', () => {
  assert.equal(candidates({ ...places, command: ['/x/my-server'] })[0]?.cli, undefined);
});

test('a configured interpreter is asked for the program beside it, then for the modules', () => {
  const found = candidates({ ...places, interpreter: '~/env/bin/python' });
  assert.deepEqual(
    found.map(({ server }) => server),
    [
      ['/home/me/env/bin/lacuna', 'lsp'],
      ['/home/me/env/bin/python', '-m', 'lsp_server'],
    ],
  );
});

test('on Windows the names and the folders are those of Windows', () => {
  const windows: Places = {
    ...places,
    platform: 'win32',
    selectedInterpreter: '',
    folders: ['C:\\app'],
    path: 'C:\\tools;D:\\bin',
    home: 'C:\\Users\\me',
  };
  assert.deepEqual(
    candidates(windows).map(({ file }) => file),
    [
      'C:\\app\\.venv\\Scripts\\lacuna.exe',
      'C:\\app\\venv\\Scripts\\lacuna.exe',
      'C:\\app\\env\\Scripts\\lacuna.exe',
      'C:\\tools\\lacuna.exe',
      'D:\\bin\\lacuna.exe',
      'C:\\Users\\me\\AppData\\Local\\lacuna\\venv\\Scripts\\lacuna.exe',
    ],
  );
});

test('what installs it puts it where it is looked for', () => {
  const command = installCommand('linux', '/home/me', '/src/lacuna');
  assert.ok(files().includes(`${ownVenv('linux', '/home/me')}/bin/lacuna`));
  assert.equal(
    command,
    'python3 -m venv /home/me/.lacuna/venv && /home/me/.lacuna/venv/bin/python -m pip install /src/lacuna',
  );
});

test('a path of any kind stays one word of the command', () => {
  assert.ok(installCommand('linux', '/home/me', "/it's here; rm -rf x").endsWith(" '/it'\\''s here; rm -rf x'"));
  assert.ok(installCommand('win32', 'C:\\Users\\me', "C:\\it's").endsWith("'C:\\it''s' }"));
});
