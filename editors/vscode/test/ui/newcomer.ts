/** The first minutes of somebody who has the extension and nothing else: walkthrough, trust, and the offer to install. */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { Newcomer } from '../harness/newcomer.ts';
import { steeredServer } from '../harness/places.ts';
import { Steering } from '../harness/steering.ts';
import { eventually, isAlive } from '../harness/wait.ts';
import type { Workbench } from '../harness/workbench.ts';
import type { Tell } from './story.ts';

/** What the file dialog shows of the checkout. */
const INSIDE = 'lsp_server';
const STEPS = ['The language server', 'The model', 'Ghost text', 'Rewrite in place', 'Fill holes'];

export function newcomerStories(tell: Tell, machine: () => Newcomer): void {
  tell('the walkthrough opens when the extension is installed, and leads where it says', async (session, workbench) => {
    // Once there is a list of walkthroughs, that of a new extension is heard of.
    await workbench.run('Open Walkthrough');
    await workbench.quickInput.waitFor();
    await workbench.press('Escape');
    await machine().install();
    const walkthrough = workbench.page.locator('.gettingStartedContainer');
    await walkthrough.getByText('Fill the gaps with Lacuna').first().waitFor();
    for (const step of STEPS) await walkthrough.locator('.getting-started-step', { hasText: step }).waitFor();
    await session.picture('walkthrough');
    await walkthrough.getByRole('button', { name: 'Install…' }).click();
    await workbench.row('Folder of a checkout').waitFor();
    await workbench.press('Escape');
    // In a narrow window there is no place for the pages beside the steps.
    await workbench.probe.evaluate((vscode) => vscode.commands.executeCommand('workbench.action.closeSidebar'), undefined);
    await walkthrough.locator('.getting-started-step', { hasText: 'Fill holes' }).click();
    await workbench.page.frameLocator('iframe.webview').frameLocator('iframe#active-frame').getByText('One edit for all of them').waitFor();
    await session.picture('walkthrough-holes');
    assert.deepEqual(machine().pythonCalls(), [], 'looking around installs nothing');
  });

  tell('what a folder says about programs is left unread until somebody trusts it', async (session) => {
    await machine().install();
    const [inVenv, inSettings] = ['in-venv', 'in-settings'].map((name) => new Steering(path.join(session.root, name))) as [Steering, Steering];
    const workbench = await session.move('distrusted');
    machine().program(path.join(session.workspace, '.venv/bin/lacuna'), inVenv.folder);
    projectSettings(session.workspace, { 'lacuna.server.command': steeredServer(inSettings.folder) });
    await session.file('a.py', '');
    await workbench.lacunaSays(/not installed here/, 60_000);
    await workbench.toast('was not found').waitFor();
    await session.picture('distrusted');
    await workbench.type('x = ');
    assert.equal(inVenv.seen().length + inSettings.seen().length, 0, 'nothing of the folder was run');

    inSettings.reply({ when: 'y = ', text: 'trusted()' });
    await trust(workbench);
    // The trust may be heard of before the settings it lets in: then what came first goes again, and who types meanwhile gets nothing.
    await eventually('the server of the settings', () => inSettings.servers().some(({ pid }) => isAlive(pid)), 60_000);
    await eventually('no other', () => inVenv.servers().every(({ pid }) => !isAlive(pid)));
    await workbench.lacunaSays(/is ready|sleeps/, 60_000);
    await workbench.hasSettings();
    await session.file('b.py', '');
    await workbench.type('y = ');
    await workbench.ghostWith('trusted()');
  });

  tell('nothing is installed without a yes; with one, the very command runs, and its server starts', async (session) => {
    await machine().install();
    const checkout = path.join(session.root, 'a checkout');
    mkdirSync(path.join(checkout, INSIDE), { recursive: true });
    const venv = path.join(machine().home, '.lacuna/venv');
    const command = `python3 -m venv ${venv} && ${venv}/bin/python -m pip install '${checkout}'`;
    const workbench = await session.move('bare');
    await session.file('a.py', '');
    await workbench.toast('was not found').getByRole('button', { name: 'Install…' }).click();
    await chooseFolder(workbench, checkout);
    await workbench.toast(command).waitFor();
    await session.picture('install-command');
    await workbench.toast(command).getByRole('button', { name: 'Copy' }).click();
    await eventually('the command in the clipboard', async () => (await clipboard(workbench)) === command);
    await workbench.toast(command).waitFor({ state: 'detached' });
    assert.deepEqual([machine().pythonCalls(), existsSync(venv)], [[], false], 'a copy runs nothing');

    await workbench.run('Lacuna: Install');
    await chooseFolder(workbench, checkout);
    await workbench.toast(command).getByRole('button', { name: 'Run in a terminal' }).click();
    await allowTerminal(workbench);
    await eventually('the installation', () => existsSync(path.join(venv, 'bin/lacuna')));
    assert.deepEqual(machine().pythonCalls(), [`-m venv ${venv}`, `-m pip install ${checkout}`]);
    await session.picture('installed');
    await workbench.toast('Start it').getByRole('button', { name: 'Start' }).click();
    await workbench.lacunaSays(/is ready|sleeps/, 60_000);
    assert.deepEqual(session.steering.servers().at(-1)?.arguments?.slice(0, 1), ['lsp']);
  });

  tell('a folder that nobody trusts is served by the person\'s own server, without what it says about actions', async (session) => {
    await machine().install();
    machine().program(path.join(machine().home, '.lacuna/venv/bin/lacuna'));
    const workbench = await session.move('limited');
    projectSettings(session.workspace, { 'lacuna.actions': [{ title: 'Sing', instruction: 'Sing.' }] });
    session.steering.reply({ when: 'z = ', text: 'ghost()' });
    await session.file('a.py', 'def f(x):\n    return x\n');
    await workbench.lacunaSays(/is ready|sleeps/, 60_000);
    await workbench.hasSettings();
    await workbench.documents.select({ line: 2, character: 0 });
    await workbench.type('z = ');
    await workbench.ghostWith('ghost()');
    await workbench.press('Escape');
    const offered = (): Promise<readonly string[]> => actions(workbench);
    assert.ok((await offered()).includes('Add docstring'));
    assert.ok(!(await offered()).includes('Sing'), 'its own actions are left unread');
    await trust(workbench);
    await eventually('its own actions', async () => (await offered()).includes('Sing'));
  });
}

function projectSettings(folder: string, settings: Readonly<Record<string, unknown>>): void {
  mkdirSync(path.join(folder, '.vscode'), { recursive: true });
  writeFileSync(path.join(folder, '.vscode/settings.json'), JSON.stringify(settings));
}

/** Trusts the folder, in the editor that VS Code has for that. */
async function trust(workbench: Workbench): Promise<void> {
  await workbench.run('Workspaces: Manage Workspace Trust');
  await workbench.page.locator('.workspace-trust-editor').getByRole('button', { name: 'Trust', exact: true }).click();
  await eventually('the folder to be trusted', () => workbench.probe.evaluate((vscode) => vscode.workspace.isTrusted, undefined));
  await workbench.run('View: Close Editor');
}

/** Chooses what to install from, in the file dialog of the workbench. */
async function chooseFolder(workbench: Workbench, folder: string): Promise<void> {
  await workbench.choose('Folder of a checkout');
  await workbench.row('..').waitFor();
  // It goes to the folder first, and the button before that would take the one where it began; what is typed while it
  // still reads that one is overwritten, and typed again.
  await eventually('the folder to be taken', async () => {
    if (!(await workbench.quickInput.isVisible())) return true;
    await workbench.input.fill(`${folder}/`, { timeout: 5000 });
    await workbench.row(INSIDE).waitFor({ timeout: 5000 });
    await workbench.quickInput.getByRole('button', { name: 'OK' }).click({ timeout: 5000 });
    await workbench.quickInput.waitFor({ state: 'hidden', timeout: 5000 });
    return true;
  }, 60_000);
}

/** A terminal is a program: VS Code asks by itself whether the folder may have one. */
async function allowTerminal(workbench: Workbench): Promise<void> {
  await workbench.dialog.getByRole('button', { name: /Trust/ }).click();
}

function clipboard(workbench: Workbench): Promise<string> {
  return workbench.probe.evaluate((vscode) => vscode.env.clipboard.readText(), undefined);
}

/** Titles of the code actions on the first lines of the active editor. */
function actions(workbench: Workbench): Promise<readonly string[]> {
  return workbench.probe.evaluate(async (vscode) => {
    const uri = vscode.window.activeTextEditor?.document.uri;
    const range = new vscode.Range(0, 0, 1, 12);
    const found = await vscode.commands.executeCommand<{ title: string }[]>('vscode.executeCodeActionProvider', uri, range);
    return found.map((one) => one.title);
  }, undefined);
}
