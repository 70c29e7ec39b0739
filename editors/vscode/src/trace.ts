/** `Lacuna: Show trace`: fills at the cursor in a process of its own and plays every step; the file stays as it is. */

import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as vscode from 'vscode';
import { call } from './cli';
import type { Server } from './server';
import { tell, tellFault, tellMissing } from './tell';

export async function showTrace(server: Server): Promise<void> {
  const editor = vscode.window.activeTextEditor;
  const cli = await server.cli();
  if (!editor) {
    void tell('info', vscode.l10n.t('Open the file, and put the cursor where something is to be filled.'));
    return;
  }
  if (!cli) {
    await tellMissing();
    return;
  }
  const title = vscode.l10n.t('Lacuna: recording a trace (the model is loaded for it)');
  const location = vscode.ProgressLocation.Notification;
  const page = await vscode.window.withProgress({ location, title, cancellable: true }, (_progress, cancel) =>
    record(cli, editor, cancel),
  );
  if (page) {
    const panel = vscode.window.createWebviewPanel(
      'lacuna.trace',
      vscode.l10n.t('Lacuna: trace'),
      vscode.ViewColumn.Beside,
      {
        enableScripts: true,
        enableForms: false,
        localResourceRoots: [],
      },
    );
    // The page brings its own content security policy: its style and its script by their digests, and nothing else.
    panel.webview.html = page;
  }
}

/** The page; undefined when there is none, and the person was told why. */
async function record(
  cli: readonly string[],
  { document, selection }: vscode.TextEditor,
  cancel: vscode.CancellationToken,
): Promise<string | undefined> {
  const folder = await mkdtemp(join(tmpdir(), 'lacuna-trace-'));
  const out = join(folder, 'trace.html');
  const before = document.lineAt(selection.active).text.slice(0, selection.active.character);
  // The program counts code points, from 1.
  const place = `${selection.active.line + 1}:${Array.from(before).length + 1}`;
  const model = vscode.workspace.getConfiguration('lacuna.server').get<string>('model', '');
  // A file that is as it was saved is named: then the program knows whether it looks like a secret.
  const isAsSaved = document.uri.scheme === 'file' && !document.isDirty;
  const file = isAsSaved ? document.uri.fsPath : '-';
  const args = ['trace', file, '--language', document.languageId, '--at', place, '--out', out];
  try {
    const input = isAsSaved ? '' : document.getText();
    const { code, stderr } = await call(cli, model ? [...args, '--model', model] : args, { input, cancel });
    if (code === 0) {
      return await readFile(out, 'utf8');
    }
    if (!cancel.isCancellationRequested) {
      void tell('error', stderr.trim());
    }
  } catch (fault) {
    tellFault(fault);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
  return undefined;
}
