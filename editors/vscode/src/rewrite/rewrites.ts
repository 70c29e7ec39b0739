/** All inline rewrites of this window: asks the server, hears its drafts, follows the text, applies what is accepted. */

import * as vscode from 'vscode';
import { type ProgressToken, WorkDoneProgress } from 'vscode-languageclient/node';
import { chooseSession } from '../core/chooseSession';
import { Refusal } from '../core/faults';
import type { Hunk } from '../core/hunks';
import { shareLines } from '../core/positions';
import { RewriteSession } from '../core/rewriteSession';
import { type RewriteParams, RewriteRequest, type RewriteResult } from '../protocol';
import type { Server } from '../server';
import { tell, tellFault } from '../tell';
import { toRange } from './conversion';

export class Rewrites implements vscode.Disposable {
  private readonly sessions = new Map<number, RewriteSession>();
  private readonly cancels = new Map<number, vscode.CancellationTokenSource>();
  private readonly tokens = new Map<ProgressToken, RewriteSession>();
  /** Rewrites whose hunks are being applied: the change that comes is their own. */
  private readonly applying = new Set<RewriteSession>();
  /** The version each document had after a hunk was applied: the next hunk joins its undo step only then. */
  private readonly applied = new Map<number, number>();
  private lastId = 0;
  private readonly changed = new vscode.EventEmitter<RewriteSession>();
  private readonly finished = new vscode.EventEmitter<RewriteSession>();
  private readonly listening: vscode.Disposable;
  /** Something of a rewrite is to be drawn anew. */
  readonly onChange = this.changed.event;
  /** A rewrite has hunks to decide on. */
  readonly onFinish = this.finished.event;

  constructor(private readonly server: Server) {
    this.listening = vscode.Disposable.from(
      server.onDraft((draft) => {
        const session = draft.token === undefined ? this.soleOf(draft.uri) : this.tokens.get(draft.token);
        if (session?.phase === 'running') {
          session.draft = draft;
          this.changed.fire(session);
        }
      }),
      vscode.workspace.onDidChangeTextDocument((event) => {
        this.follow(event);
      }),
      vscode.workspace.onDidCloseTextDocument((document) => {
        this.of(document.uri).forEach((session) => {
          this.close(session);
        });
      }),
    );
  }

  get runningCount(): number {
    return [...this.sessions.values()].filter((session) => session.phase === 'running').length;
  }

  get(id: number): RewriteSession | undefined {
    return this.sessions.get(id);
  }

  /** The open rewrites of a document. */
  of(uri: vscode.Uri): RewriteSession[] {
    const key = uri.toString();
    return [...this.sessions.values()].filter((session) => session.uri === key);
  }

  at(uri: vscode.Uri, position: vscode.Position): RewriteSession | undefined {
    return chooseSession(this.of(uri), position);
  }

  /** Begin one; what was proposed for the same lines before is given up for it. */
  begin(document: vscode.TextDocument, range: vscode.Range, instruction: string): RewriteSession {
    this.of(document.uri)
      .filter((other) => shareLines(other.range, range))
      .forEach((other) => {
        this.close(other);
      });
    const session = new RewriteSession(++this.lastId, document.uri.toString(), range, instruction);
    this.sessions.set(session.id, session);
    void this.ask(session);
    return session;
  }

  /** Ask again: another text for the same instruction. */
  retry(session: RewriteSession): void {
    session.seed += 1;
    void this.ask(session);
  }

  /** Ask again with one more instruction. */
  refine(session: RewriteSession, instruction: string): void {
    session.instructions.push(instruction);
    void this.ask(session);
  }

  /** Give up a rewrite in whatever state it is; the text stays as it is. */
  close(session: RewriteSession): void {
    session.close();
    this.cancels.get(session.id)?.cancel();
    this.forget(session);
  }

  reject(session: RewriteSession, ids: readonly number[]): void {
    session.take(ids);
    session.closeIfDecided();
    this.settle(session);
  }

  /** Put hunks into the document: those of one call as one undo step, which also joins the hunks accepted just before. */
  async accept(session: RewriteSession, ids: readonly number[]): Promise<void> {
    const document = await vscode.workspace.openTextDocument(vscode.Uri.parse(session.uri));
    const hunks = session.take(ids);
    this.applying.add(session);
    try {
      const joins = this.applied.get(session.id) === document.version;
      if (!(await apply(document, hunks, { undoStopBefore: !joins, undoStopAfter: !session.hunks.length }))) {
        session.putBack(hunks);
        void tell('warning', vscode.l10n.t('The change was not taken: the file may be read-only.'));
      }
    } finally {
      this.applying.delete(session);
    }
    this.applied.set(session.id, document.version);
    session.closeIfDecided();
    this.settle(session);
  }

  dispose(): void {
    [...this.sessions.values()].forEach((session) => {
      this.close(session);
    });
    this.listening.dispose();
    this.changed.dispose();
    this.finished.dispose();
  }

  private async ask(session: RewriteSession): Promise<void> {
    this.cancels.get(session.id)?.cancel();
    const asking = session.ask();
    const cancel = new vscode.CancellationTokenSource();
    const token = `lacuna-rewrite-${session.id}-${asking}`;
    this.cancels.set(session.id, cancel);
    this.tokens.set(token, session);
    this.changed.fire(session);
    try {
      const answer = await this.request(session, token, cancel.token);
      if (session.asking === asking && session.phase === 'running') {
        this.receive(session, answer);
      }
    } catch (fault) {
      if (session.asking === asking && session.phase === 'running') {
        this.close(session);
        tellFault(fault);
      }
    } finally {
      this.tokens.delete(token);
      cancel.dispose();
      if (this.cancels.get(session.id) === cancel) {
        this.cancels.delete(session.id);
      }
    }
  }

  private async request(session: RewriteSession, token: string, cancel: vscode.CancellationToken) {
    const client = this.server.running;
    if (!client) {
      throw new Refusal(vscode.l10n.t('The language server is not running: restart it, or look at its status.'));
    }
    const document = await vscode.workspace.openTextDocument(vscode.Uri.parse(session.uri));
    const listening = client.onProgress(WorkDoneProgress.type, token, (progress) => {
      if (progress.kind === 'report' && session.phase === 'running') {
        session.percent = progress.percentage;
        this.changed.fire(session);
      }
    });
    const params: RewriteParams = {
      textDocument: { uri: client.code2ProtocolConverter.asUri(document.uri), version: document.version },
      range: client.code2ProtocolConverter.asRange(toRange(session.range)),
      instruction: session.instruction,
      workDoneToken: token,
      ...(session.seed ? { seed: session.seed } : {}),
    };
    try {
      return await client.sendRequest(RewriteRequest, params, cancel);
    } finally {
      listening.dispose();
    }
  }

  private receive(session: RewriteSession, answer: RewriteResult | null): void {
    if (!answer) {
      // The server has said why.
      this.close(session);
      return;
    }
    const isOpen = session.receive(answer);
    if (answer.note) {
      void tell('info', answer.note);
    }
    if (isOpen) {
      this.changed.fire(session);
      this.finished.fire(session);
      return;
    }
    const nothing = vscode.l10n.t('Nothing to change: the text stays as it is. Try again with other words.');
    void tell('info', nothing);
    this.forget(session);
  }

  private follow({ document, contentChanges }: vscode.TextDocumentChangeEvent): void {
    if (!contentChanges.length) {
      return;
    }
    for (const session of this.of(document.uri)) {
      session.follow(document.version, contentChanges, this.applying.has(session));
      if (!this.applying.has(session)) {
        this.settle(session);
      }
    }
  }

  private settle(session: RewriteSession): void {
    if (session.phase === 'closed') {
      this.forget(session);
    } else {
      this.changed.fire(session);
    }
  }

  private forget(session: RewriteSession): void {
    this.sessions.delete(session.id);
    this.applied.delete(session.id);
    this.changed.fire(session);
  }

  private soleOf(uri: string): RewriteSession | undefined {
    const running = this.of(vscode.Uri.parse(uri)).filter((session) => session.phase === 'running');
    return running.length === 1 ? running[0] : undefined;
  }
}

async function apply(
  document: vscode.TextDocument,
  hunks: readonly Hunk[],
  undo: { undoStopBefore: boolean; undoStopAfter: boolean },
): Promise<boolean> {
  const editor = vscode.window.visibleTextEditors.find((one) => one.document === document);
  // The left side of a diff refuses edits: then they go the other way, as an undo step of their own.
  const done = await editor?.edit((builder) => {
    hunks.forEach((hunk) => {
      builder.replace(toRange(hunk.range), hunk.newText);
    });
  }, undo);
  if (done) {
    return true;
  }
  const edit = new vscode.WorkspaceEdit();
  edit.set(
    document.uri,
    hunks.map((hunk) => vscode.TextEdit.replace(toRange(hunk.range), hunk.newText)),
  );
  return vscode.workspace.applyEdit(edit);
}
