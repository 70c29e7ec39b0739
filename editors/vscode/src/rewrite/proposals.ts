/** The document as a rewrite would have it, read-only and always up to date, for the right side of a diff. */

import * as vscode from 'vscode';
import { type OffsetEdit, type Placed, propose, withLineEnds } from '../core/hunks';
import type { RewriteSession } from '../core/rewriteSession';
import { toPosition } from './conversion';
import type { Rewrites } from './rewrites';

export const PROPOSAL = 'lacuna-proposal';
/** The fragment of the text as it is now, where its own document cannot be shown in a diff. */
const BEFORE = 'before';

export class Proposals implements vscode.TextDocumentContentProvider, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<vscode.Uri>();
  private readonly listening: vscode.Disposable;
  readonly onDidChange = this.changed.event;

  constructor(private readonly rewrites: Rewrites) {
    this.listening = vscode.Disposable.from(
      vscode.workspace.registerTextDocumentContentProvider(PROPOSAL, this),
      rewrites.onChange((session) => {
        if (session.phase === 'closed') {
          void closeDiff(session);
        } else if (session.phase === 'review') {
          this.changed.fire(uriOf(session));
          this.changed.fire(uriOf(session).with({ fragment: BEFORE }));
        }
      }),
    );
  }

  async provideTextDocumentContent(uri: vscode.Uri): Promise<string> {
    const session = this.sessionOf(uri);
    if (!session) {
      return '';
    }
    return uri.fragment === BEFORE ? (await documentOf(session)).getText() : (await this.proposal(session)).text;
  }

  sessionOf(uri: vscode.Uri): RewriteSession | undefined {
    return uri.scheme === PROPOSAL ? this.rewrites.get(Number(uri.query)) : undefined;
  }

  /** Where the hunks stand in the proposal. */
  async places(session: RewriteSession): Promise<Placed[]> {
    return (await this.proposal(session)).places;
  }

  async show(session: RewriteSession): Promise<void> {
    const document = await documentOf(session);
    const original = isCell(session) ? uriOf(session).with({ fragment: BEFORE }) : document.uri;
    const proposal = await inLanguage(uriOf(session), document.languageId);
    await inLanguage(original, document.languageId);
    const name = document.uri.path.split('/').pop() ?? '';
    const title = vscode.l10n.t('{0}: {1}', name, session.instructions.join(', '));
    const first = proposal.positionAt((await this.places(session))[0]?.start ?? 0);
    await vscode.commands.executeCommand('vscode.diff', original, uriOf(session), title, {
      // A preview would take the place of the document's own tab where that is one, and closing it leave no editor.
      preview: false,
      selection: new vscode.Range(first, first),
    });
  }

  dispose(): void {
    this.listening.dispose();
    this.changed.dispose();
  }

  private async proposal(session: RewriteSession): Promise<{ text: string; places: Placed[] }> {
    const document = await documentOf(session);
    const eol = document.eol === vscode.EndOfLine.CRLF ? '\r\n' : '\n';
    const edits = session.hunks.map((hunk): OffsetEdit => ({
      id: hunk.id,
      start: document.offsetAt(toPosition(hunk.range.start)),
      end: document.offsetAt(toPosition(hunk.range.end)),
      newText: withLineEnds(hunk.newText, eol),
    }));
    return propose(document.getText(), edits);
  }
}

function documentOf(session: RewriteSession): Thenable<vscode.TextDocument> {
  return vscode.workspace.openTextDocument(vscode.Uri.parse(session.uri));
}

async function inLanguage(uri: vscode.Uri, language: string): Promise<vscode.TextDocument> {
  const document = await vscode.workspace.openTextDocument(uri);
  return document.languageId === language ? document : vscode.languages.setTextDocumentLanguage(document, language);
}

/** A cell's path is the notebook's: both sides of its diff get one of their own, or it would open as a notebook. */
function isCell(session: RewriteSession): boolean {
  return vscode.Uri.parse(session.uri).scheme === 'vscode-notebook-cell';
}

function uriOf(session: RewriteSession): vscode.Uri {
  const { path } = vscode.Uri.parse(session.uri);
  const whole = path.startsWith('/') ? path : `/${path}`;
  return vscode.Uri.from({ scheme: PROPOSAL, path: isCell(session) ? '/cell' : whole, query: String(session.id) });
}

async function closeDiff(session: RewriteSession): Promise<void> {
  const uri = uriOf(session).toString();
  const tabs = vscode.window.tabGroups.all.flatMap((group) => group.tabs);
  const diffs = tabs.filter(
    ({ input }) => input instanceof vscode.TabInputTextDiff && input.modified.toString() === uri,
  );
  if (diffs.length) {
    await vscode.window.tabGroups.close(diffs);
  }
}
