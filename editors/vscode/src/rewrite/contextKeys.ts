/** Tells key bindings and menus whether the active editor has a rewrite running or to be decided. */

import * as vscode from 'vscode';
import type { Proposals } from './proposals';
import type { Rewrites } from './rewrites';

export function trackContext(rewrites: Rewrites, proposals: Proposals): vscode.Disposable {
  let told = '';
  const tell = () => {
    const editor = vscode.window.activeTextEditor;
    const session =
      editor && (proposals.sessionOf(editor.document.uri) ?? rewrites.at(editor.document.uri, editor.selection.active));
    const phase = session?.phase ?? 'none';
    if (phase !== told) {
      told = phase;
      void vscode.commands.executeCommand('setContext', 'lacuna.rewrite', phase);
    }
  };
  return vscode.Disposable.from(
    rewrites.onChange(tell),
    vscode.window.onDidChangeActiveTextEditor(tell),
    vscode.window.onDidChangeTextEditorSelection(tell),
  );
}
