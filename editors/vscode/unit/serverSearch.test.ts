import assert from 'node:assert/strict';
import { test } from 'node:test';
import { installCommand, installShell } from '../src/core/installCommand';
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
  localAppData: '',
};
const windows: Places = {
  platform: 'win32',
  isTrusted: true,
  command: [],
  interpreter: '',
  selectedInterpreter: '',
  folders: ['C:\\app'],
  path: 'C:\\tools;D:\\bin',
  home: 'C:\\Users\\me',
  localAppData: 'C:\\Users\\me\\AppData\\Local',
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

const onWindows = (changes: Partial<Places> = {}) => candidates({ ...windows, ...changes }).map(({ file }) => file);
const OWN = 'C:\\Users\\me\\AppData\\Local\\lacuna\\venv\\Scripts\\lacuna.exe';

test('on Windows the names and the folders are those of Windows', () => {
  assert.deepEqual(onWindows(), [
    'C:\\app\\.venv\\Scripts\\lacuna.exe',
    'C:\\app\\venv\\Scripts\\lacuna.exe',
    'C:\\app\\env\\Scripts\\lacuna.exe',
    'C:\\tools\\lacuna.exe',
    'D:\\bin\\lacuna.exe',
    OWN,
  ]);
});

test('a path of Windows: quotation marks, blanks, shares; no folder of whatever drive or folder one is on', () => {
  const path = '"C:\\Program Files\\Py;thon";;\\\\server\\share\\bin; E:/forward ;\\rooted;C:relative;.;..\\up';
  assert.deepEqual(onWindows({ folders: [], path }), [
    'C:\\Program Files\\Py;thon\\lacuna.exe',
    '\\\\server\\share\\bin\\lacuna.exe',
    'E:\\forward\\lacuna.exe',
    OWN,
  ]);
});

test('on Windows programs stand beside the interpreter of a venv, and in Scripts below any other', () => {
  const folders: string[] = [];
  assert.deepEqual(onWindows({ folders, path: '', selectedInterpreter: 'C:\\conda\\python.exe' }), [
    'C:\\conda\\lacuna.exe',
    'C:\\conda\\Scripts\\lacuna.exe',
    OWN,
  ]);
  const interpreter = '~\\env\\Scripts\\python.exe';
  assert.deepEqual(
    candidates({ ...windows, interpreter }).map(({ server }) => server),
    [
      ['C:\\Users\\me\\env\\Scripts\\lacuna.exe', 'lsp'],
      ['C:\\Users\\me\\env\\Scripts\\Scripts\\lacuna.exe', 'lsp'],
      ['C:\\Users\\me\\env\\Scripts\\python.exe', '-m', 'lsp_server'],
    ],
  );
});

test('folders of a workspace on a share, or written with slashes', () => {
  const [share, slashes] = [['\\\\server\\share\\my app'], ['c:/app/']].map((folders) => onWindows({ folders })[0]);
  assert.equal(share, '\\\\server\\share\\my app\\.venv\\Scripts\\lacuna.exe');
  assert.equal(slashes, 'c:\\app\\.venv\\Scripts\\lacuna.exe');
});

test('local data of Windows may lie on another drive, and is where it was when nobody says', () => {
  assert.equal(ownVenv({ ...windows, localAppData: 'D:\\Local' }), 'D:\\Local\\lacuna\\venv');
  assert.equal(ownVenv({ ...windows, localAppData: '' }), 'C:\\Users\\me\\AppData\\Local\\lacuna\\venv');
});

test('what installs it puts it where it is looked for', () => {
  const command = installCommand(places, '/src/lacuna');
  assert.ok(files().includes(`${ownVenv(places)}/bin/lacuna`));
  assert.equal(
    command,
    'python3 -m venv /home/me/.lacuna/venv && /home/me/.lacuna/venv/bin/python -m pip install /src/lacuna',
  );
  assert.equal(installShell('linux'), undefined, 'any shell of Unix understands it');
});

test('on Windows it is installed by PowerShell, whatever shell the person uses', () => {
  const venv = 'C:\\Users\\me\\AppData\\Local\\lacuna\\venv';
  assert.equal(
    installCommand(windows, 'C:\\src\\lacuna'),
    `py -m venv '${venv}'; if ($?) { & '${venv}\\Scripts\\python.exe' -m pip install 'C:\\src\\lacuna' }`,
  );
  assert.ok(onWindows().includes(`${venv}\\Scripts\\lacuna.exe`));
  assert.equal(installShell('win32'), 'powershell.exe');
});

test('a path of any kind stays one word of the command', () => {
  assert.ok(installCommand(places, "/it's here; rm -rf x").endsWith(" '/it'\\''s here; rm -rf x'"));
  assert.ok(installCommand(windows, "C:\\it's").endsWith("'C:\\it''s' }"));
  // PowerShell takes typographic quotation marks for plain ones.
  assert.ok(installCommand(windows, 'C:\\a’; calc; ‘').endsWith("'C:\\a’’; calc; ‘‘' }"));
});
