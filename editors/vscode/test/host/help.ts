/** What the tests in the extension host share. */
import { strict as assert } from 'node:assert';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import * as vscode from 'vscode';
import type { Api } from '../../src/extension.ts';
import { type Answer, Steering } from '../harness/steering.ts';
import { eventually } from '../harness/wait.ts';

export { assert, eventually };

export const steering = new Steering(process.env.LACUNA_STEERING ?? '');

export function reply(...replies: readonly Answer[]): void {
  steering.set({ replies });
}

/** The extension, awake, with a server that answers. */
export async function lacuna(): Promise<Api> {
  const extension = vscode.extensions.getExtension<Api>('lacuna.lacuna');
  assert.ok(extension, 'the extension is not there');
  const api = await extension.activate();
  await eventually('the server', () => api.server.state === 'running');
  // What is asked before the settings are there is answered with nothing, and not asked again.
  await eventually('the settings to be there', async () => (await command<{ enabled: boolean }>('lacuna.status')).enabled);
  return api;
}

export async function show(name: string, text: string): Promise<vscode.TextEditor> {
  const folder = vscode.workspace.workspaceFolders?.[0]?.uri.fsPath;
  assert.ok(folder);
  const file = path.join(folder, name);
  writeFileSync(file, text);
  // As a person opens it: one opened through the API stays open for minutes behind its closed tab.
  await command('vscode.open', vscode.Uri.file(file), { preview: false });
  await lacuna();
  return eventually(`${name} to be shown`, () => {
    const editor = vscode.window.activeTextEditor;
    return editor?.document.uri.fsPath === file ? editor : undefined;
  });
}

export function select(editor: vscode.TextEditor, text: string): void {
  const at = editor.document.getText().indexOf(text);
  assert.ok(at >= 0, `there is no ${text}`);
  editor.selection = new vscode.Selection(editor.document.positionAt(at), editor.document.positionAt(at + text.length));
}

export async function textIs(editor: vscode.TextEditor, expected: string): Promise<void> {
  await eventually(`the text ${JSON.stringify(expected)}`, () => {
    const text = editor.document.getText();
    if (text !== expected) throw new Error(JSON.stringify(text));
    return true;
  });
}

export const command = <T = unknown>(name: string, ...args: readonly unknown[]): Thenable<T> =>
  vscode.commands.executeCommand<T>(name, ...args);
