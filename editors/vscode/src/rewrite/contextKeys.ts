/**
 * Tells key bindings and menus whether the active editor has a rewrite running or to be decided (`lacuna.rewrite`), and
 * whether the cursor stands in it (`lacuna.inRewrite`).
 */

import * as vscode from 'vscode';
import type { Range } from '../core/positions';
import type { Proposals } from './proposals';
import type { Rewrites } from './rewrites';

export function trackContext(rewrites: Rewrites, proposals: Proposals): vscode.Disposable {
  const told = new Map<string, unknown>();
  const set = (key: string, value: unknown) => {
    if (told.get(key) !== value) {
      told.set(key, value);
      void vscode.commands.executeCommand('setContext', key, value);
    }
  };
  const tell = () => {
    const editor = vscode.window.activeTextEditor;
    const cursor = editor?.selection.active;
    const proposed = editor && proposals.sessionOf(editor.document.uri);
    const session = proposed ?? (editor && cursor && rewrites.at(editor.document.uri, cursor));
    const isInside = cursor !== undefined && session !== undefined && isOnLines(session.range, cursor.line);
    set('lacuna.rewrite', session?.phase ?? 'none');
    set('lacuna.inRewrite', proposed !== undefined || isInside);
  };
  return vscode.Disposable.from(
    rewrites.onChange(tell),
    vscode.window.onDidChangeActiveTextEditor(tell),
    vscode.window.onDidChangeTextEditorSelection(tell),
  );
}

function isOnLines({ start, end }: Range, line: number): boolean {
  return start.line <= line && line <= end.line;
}
