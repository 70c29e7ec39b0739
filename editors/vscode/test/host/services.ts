/** The extension's services, asked through the API as other extensions would. */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import * as vscode from 'vscode';
import { assert, command, eventually, lacuna, reply, show, steering, textIs } from './help.ts';
import { isAlive, pause } from '../harness/wait.ts';
import type { HostTest } from './suite.ts';

interface Manifest {
  readonly contributes: { readonly commands: readonly { readonly command: string }[] };
}

const commandsAreThere: HostTest = {
  name: 'every command of the manifest is there',
  run: async () => {
    await show('commands.py', '');
    const extension = vscode.extensions.getExtension('lacuna.lacuna');
    assert.ok(extension);
    const manifest = JSON.parse(readFileSync(path.join(extension.extensionPath, 'package.json'), 'utf8')) as Manifest;
    const registered = new Set(await vscode.commands.getCommands(true));
    const missing = manifest.contributes.commands.map((one) => one.command).filter((id) => !registered.has(id));
    assert.deepEqual(missing, []);
    for (const id of ['lacuna.rewrite', 'lacuna.apply', 'lacuna.status', 'lacuna.accepted']) assert.ok(registered.has(id), id);
  },
};

const acceptanceIsTold: HostTest = {
  name: 'a suggestion that is taken is told to the server',
  run: async () => {
    reply({ when: 'value = ', text: 'compute()' });
    const editor = await show('accepted.py', 'value = ');
    editor.selection = new vscode.Selection(0, 8, 0, 8);
    const accepted = await acceptances();
    await takeGhostText(editor, 'value = compute()');
    await eventually('the server to hear of it', async () => (await acceptances()) > accepted);
  },
};

const settingsReachTheServer: HostTest = {
  name: 'a setting that is changed holds at once',
  run: async () => {
    const status = async (): Promise<boolean> => (await command<{ enabled: boolean }>('lacuna.status')).enabled;
    await show('setting.py', '');
    const settings = vscode.workspace.getConfiguration('lacuna');
    assert.equal(await status(), true);
    await settings.update('enable', false, vscode.ConfigurationTarget.Global);
    await eventually('the server to be off', async () => !(await status()));
    await settings.update('enable', undefined, vscode.ConfigurationTarget.Global);
    await eventually('the server to be on', status);
  },
};

const actionsAreOffered: HostTest = {
  name: 'prepared actions are offered, marked as made by a model, and resolved when chosen',
  run: async () => {
    reply({ kind: 'rewrite', text: 'def f(x: int) -> int:\n    return x' });
    const editor = await show('actions.py', 'def f(x):\n    return x\n');
    const all = new vscode.Range(0, 0, 1, 12);
    const asked = steering.requests('Rewrite').length;
    const offered = await command<vscode.CodeAction[]>('vscode.executeCodeActionProvider', editor.document.uri, all);
    const titles = offered.map((one) => one.title);
    for (const title of ['Add docstring', 'Add type hints', 'Simplify']) assert.ok(titles.includes(title), titles.join(', '));
    assert.equal(steering.requests('Rewrite').length, asked, 'what is only offered costs nothing');
    const kind = offered.find((one) => one.title === 'Add type hints')?.kind?.value;
    const [chosen] = await command<vscode.CodeAction[]>('vscode.executeCodeActionProvider', editor.document.uri, all, kind, 1);
    assert.ok(chosen?.edit);
    await vscode.workspace.applyEdit(chosen.edit);
    await textIs(editor, 'def f(x: int) -> int:\n    return x\n');
  },
};

const secretsStayHere: HostTest = {
  name: 'a file of secrets is never asked about',
  run: async () => {
    reply({ text: 'never' });
    const editor = await show('.env', 'TOKEN=abc\nOTHER=');
    editor.selection = new vscode.Selection(1, 6, 1, 6);
    const asked = steering.requests('Fill').length;
    await command('editor.action.inlineSuggest.trigger');
    // A request behind it in the same queue has been answered: so has the one before.
    await command('lacuna.status');
    assert.equal(steering.requests('Fill').length, asked);
  },
};

const restarts: HostTest = {
  name: 'a restart leaves one server',
  run: async () => {
    const editor = await show('restart.py', 'x = ');
    reply({ when: 'x = ', text: 'again()' });
    const before = steering.servers().length;
    await command('lacuna.restart');
    const api = await lacuna();
    assert.equal(steering.servers().length, before + 1);
    assert.equal(api.server.state, 'running');
    editor.selection = new vscode.Selection(0, 4, 0, 4);
    await takeGhostText(editor, 'x = again()');
    const old = steering.servers().at(-2)?.pid ?? 0;
    await eventually('the old server to be gone', () => !isAlive(old));
  },
};

export const serviceTests = [commandsAreThere, acceptanceIsTold, settingsReachTheServer, actionsAreOffered, secretsStayHere, restarts];

async function takeGhostText(editor: vscode.TextEditor, expected: string): Promise<void> {
  await eventually('ghost text to be taken', async () => {
    await command('editor.action.inlineSuggest.trigger');
    // Whether it is shown by now no API tells.
    await pause(500);
    await command('editor.action.inlineSuggest.commit');
    return editor.document.getText() === expected;
  });
}

async function acceptances(): Promise<number> {
  const { suggestions } = await command<{ suggestions: { accepted: number } }>('lacuna.status');
  return suggestions.accepted;
}
