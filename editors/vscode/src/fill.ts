/** Fill holes and fill selection as commands: one undo step, and progress that can be cancelled. */

import * as vscode from 'vscode';
import type { LanguageClient } from 'vscode-languageclient/node';
import { FILL_HOLES_KIND, FillHolesRequest, type FillHolesParams } from './protocol';
import type { Server } from './server';
import { tell, tellFault } from './tell';

/** Every hole of the selection, or of the whole document when nothing is selected. */
export async function fillHoles(server: Server): Promise<void> {
  const editor = vscode.window.activeTextEditor;
  if (!editor || !server.running) {
    return;
  }
  const { document, selection } = editor;
  const all = new vscode.Range(0, 0, document.lineCount, 0);
  const range = document.validateRange(selection.isEmpty ? all : selection);
  // What a hole looks like only the server knows: it offers an action where there are some.
  const kind = vscode.CodeActionKind.RefactorRewrite.append(FILL_HOLES_KIND.slice('refactor.rewrite.'.length));
  const actions = await vscode.commands.executeCommand<vscode.CodeAction[]>(
    'vscode.executeCodeActionProvider',
    document.uri,
    range,
    kind.value,
    1,
  );
  const [action] = actions.filter((one) => one.kind?.value === FILL_HOLES_KIND);
  if (!action) {
    void tell('info', vscode.l10n.t('There are no holes here: write <fill> where one is to be.'));
  } else if (action.edit) {
    await put(action.edit);
  }
}

/** Every selection made anew from its surroundings, each cursor filled: all in one request, so that they fit. */
export async function fillSelection(server: Server): Promise<void> {
  const editor = vscode.window.activeTextEditor;
  const client = server.running;
  if (!editor || !client) {
    return;
  }
  const title = vscode.l10n.t('Lacuna: filling');
  const location = vscode.ProgressLocation.Notification;
  await vscode.window.withProgress({ location, title, cancellable: true }, (_progress, cancel) =>
    fill(client, editor, cancel),
  );
}

async function fill(
  client: LanguageClient,
  editor: vscode.TextEditor,
  cancel: vscode.CancellationToken,
): Promise<void> {
  const { document, selections } = editor;
  const { code2ProtocolConverter: to, protocol2CodeConverter: from } = client;
  const params: FillHolesParams = {
    textDocument: { uri: to.asUri(document.uri), version: document.version },
    ranges: selections.map((selection) => to.asRange(selection)),
  };
  try {
    const answer = await client.sendRequest(FillHolesRequest, params, cancel);
    if (!answer || cancel.isCancellationRequested) {
      return;
    }
    if (answer.version !== document.version) {
      void tell(
        'warning',
        vscode.l10n.t('The text changed meanwhile, and was left as it is. Select it and try again.'),
      );
      return;
    }
    const edit = new vscode.WorkspaceEdit();
    const filled = answer.holes.flatMap(({ range, newText }) =>
      newText === null ? [] : [vscode.TextEdit.replace(from.asRange(range), newText)],
    );
    edit.set(document.uri, filled);
    await put(edit);
  } catch (fault) {
    if (!cancel.isCancellationRequested) {
      tellFault(fault);
    }
  }
}

async function put(edit: vscode.WorkspaceEdit): Promise<void> {
  if (!(await vscode.workspace.applyEdit(edit))) {
    void tell('warning', vscode.l10n.t('The change was not taken: the file may be read-only.'));
  }
}
