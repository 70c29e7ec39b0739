/**
 * Shows rewrites in the text itself, which they do not change: a draft is laid over the selection, whose own text is
 * made invisible and narrow; hunks stand behind the text that they would replace.
 */

import * as vscode from 'vscode';
import { draftRows, shownText } from '../core/draft';
import { type Hunk, preview, rowsBeside } from '../core/hunks';
import { isEmpty } from '../core/positions';
import type { RewriteSession } from '../core/rewriteSession';
import { toRange } from './conversion';
import type { Rewrites } from './rewrites';

const color = (id: string) => new vscode.ThemeColor(id);

export class Decorations implements vscode.Disposable {
  private readonly waiting = vscode.window.createTextEditorDecorationType({ opacity: '0.45' });
  private readonly hidden = vscode.window.createTextEditorDecorationType({ opacity: '0', letterSpacing: '-1ch' });
  private readonly draft = vscode.window.createTextEditorDecorationType({
    rangeBehavior: vscode.DecorationRangeBehavior.ClosedClosed,
  });
  private readonly area = vscode.window.createTextEditorDecorationType({
    isWholeLine: true,
    backgroundColor: color('editor.wordHighlightBackground'),
    overviewRulerColor: color('editorOverviewRuler.infoForeground'),
    overviewRulerLane: vscode.OverviewRulerLane.Left,
  });
  private readonly removed = vscode.window.createTextEditorDecorationType({
    backgroundColor: color('diffEditor.removedTextBackground'),
    overviewRulerColor: color('editorOverviewRuler.modifiedForeground'),
    overviewRulerLane: vscode.OverviewRulerLane.Left,
  });
  private readonly listening: vscode.Disposable;

  constructor(private readonly rewrites: Rewrites) {
    const drawAll = () => {
      vscode.window.visibleTextEditors.forEach((editor) => {
        this.draw(editor);
      });
    };
    this.listening = vscode.Disposable.from(
      rewrites.onChange((session) => {
        vscode.window.visibleTextEditors
          .filter((editor) => editor.document.uri.toString() === session.uri)
          .forEach((editor) => {
            this.draw(editor);
          });
      }),
      vscode.window.onDidChangeVisibleTextEditors(drawAll),
    );
  }

  dispose(): void {
    this.listening.dispose();
    [this.waiting, this.hidden, this.draft, this.area, this.removed].forEach((type) => {
      type.dispose();
    });
  }

  private draw(editor: vscode.TextEditor): void {
    const sessions = isSideOfDiff(editor) ? [] : this.rewrites.of(editor.document.uri);
    const running = sessions.filter((session) => session.phase === 'running');
    const drafted = running.filter((session) => session.draft);
    const hunks = sessions.flatMap((session) =>
      session.hunks.flatMap((hunk) => shownHunk(session, hunk, editor.document)),
    );
    editor.setDecorations(
      this.waiting,
      running.filter((session) => !session.draft).map((session) => toRange(session.range)),
    );
    editor.setDecorations(
      this.hidden,
      drafted.map((session) => toRange(session.range)),
    );
    editor.setDecorations(
      this.draft,
      drafted.flatMap((session) => shownDraft(session, editor)),
    );
    editor.setDecorations(
      this.area,
      running.map((session) => toRange(session.range)),
    );
    editor.setDecorations(this.removed, hunks);
  }
}

/** Beside a proposal the old text must stand as it is. VS Code tells no column of the sides of a diff, nor of cells. */
function isSideOfDiff(editor: vscode.TextEditor): boolean {
  return editor.viewColumn === undefined && editor.document.uri.scheme !== 'vscode-notebook-cell';
}

/**
 * One decoration for each line of the selection, behind its hidden text, so that what stands above it (lenses) keeps its
 * place: the settled part of the row, then the rest.
 */
function shownDraft(session: RewriteSession, editor: vscode.TextEditor): vscode.DecorationOptions[] {
  const { draft, range } = session;
  const tabSize = Number(editor.options.tabSize) || 4;
  const rows = draft ? draftRows(draft.text, draft.settled, range.end.line - range.start.line + 1) : [];
  return rows.map((row, index) => {
    const line = range.start.line + index;
    const length = editor.document.lineAt(Math.min(line, editor.document.lineCount - 1)).text.length;
    const end = line === range.end.line ? range.end.character : length;
    return {
      range: new vscode.Range(line, end, line, end),
      renderOptions: {
        before: {
          contentText: shownText(row.settled, tabSize),
          color: color('lacuna.settledForeground'),
        },
        after: {
          contentText: shownText(row.undecided, tabSize),
          color: color('lacuna.undecidedForeground'),
          fontStyle: 'italic',
        },
      },
    };
  });
}

/** Line by line where there are as many new ones as old ones, on one line otherwise. */
function shownHunk(session: RewriteSession, hunk: Hunk, document: vscode.TextDocument): vscode.DecorationOptions[] {
  const hoverMessage = hover(session, hunk);
  const rows = rowsBeside(hunk).filter(({ line }) => line < document.lineCount);
  if (rows.length) {
    const whole = toRange(hunk.range);
    return rows.map(({ line, text }) => {
      const { range, firstNonWhitespaceCharacterIndex } = document.lineAt(line);
      const part = whole.intersection(range.with(range.start.with({ character: firstNonWhitespaceCharacterIndex })));
      return { range: part ?? range, hoverMessage, renderOptions: { after: inserted(text, true) } };
    });
  }
  const { isAbove, text } = preview(hunk);
  const above = () => document.lineAt(Math.min(hunk.range.start.line, document.lineCount) - 1).range.end;
  const range = isAbove ? new vscode.Range(above(), above()) : toRange(hunk.range);
  return [{ range, hoverMessage, renderOptions: { after: inserted(text, !isEmpty(hunk.range)) } }];
}

/** Behind the text it replaces it keeps a distance; what is only inserted stands where it will. */
function inserted(text: string, isApart: boolean): vscode.ThemableDecorationAttachmentRenderOptions {
  return {
    contentText: shownText(text, 4),
    ...(isApart ? { margin: '0 0 0 0.6em' } : {}),
    backgroundColor: color('diffEditor.insertedTextBackground'),
    color: color('lacuna.settledForeground'),
  };
}

function hover(session: RewriteSession, hunk: Hunk): vscode.MarkdownString {
  const argument = encodeURIComponent(JSON.stringify([{ session: session.id, hunk: hunk.id }]));
  const link = (title: string, command: string) => `[${title}](command:${command}?${argument})`;
  const text = new vscode.MarkdownString(undefined, true);
  text.isTrusted = { enabledCommands: ['lacuna.acceptHunk', 'lacuna.rejectHunk'] };
  text.appendMarkdown(
    `${link(`$(check) ${vscode.l10n.t('Accept')}`, 'lacuna.acceptHunk')} · ` +
      link(`$(close) ${vscode.l10n.t('Reject')}`, 'lacuna.rejectHunk'),
  );
  text.appendCodeblock(hunk.newText);
  return text;
}
