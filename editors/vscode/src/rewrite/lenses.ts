/** The commands of rewrites, on lines above the text they are about. */

import * as vscode from 'vscode';
import type { RewriteSession } from '../core/rewriteSession';
import { SCHEMES } from '../server';
import { toRange } from './conversion';
import type { Rewrites } from './rewrites';

/** Lenses that change more often than this flicker. */
const PERCENT_STEP = 10;

export class Lenses implements vscode.CodeLensProvider, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<void>();
  private readonly shown = new Map<number, string>();
  private readonly listening: vscode.Disposable;
  readonly onDidChangeCodeLenses = this.changed.event;

  constructor(private readonly rewrites: Rewrites) {
    this.listening = vscode.Disposable.from(
      vscode.languages.registerCodeLensProvider(
        SCHEMES.map((scheme) => ({ scheme })),
        this,
      ),
      rewrites.onChange((session) => {
        const face = faceOf(session);
        if (this.shown.get(session.id) !== face) {
          this.shown.set(session.id, face);
          this.changed.fire();
        }
        if (session.phase === 'closed') {
          this.shown.delete(session.id);
        }
      }),
    );
  }

  provideCodeLenses(document: vscode.TextDocument): vscode.CodeLens[] {
    return this.rewrites.of(document.uri).flatMap((session) => {
      const at = toRange({ start: session.range.start, end: session.range.start });
      const lens = (title: string, command: string, where = at, hunk?: number) =>
        new vscode.CodeLens(where, { title, command, arguments: [{ session: session.id, hunk }] });
      return session.phase === 'running' ? running(session, lens) : review(session, lens);
    });
  }

  dispose(): void {
    this.listening.dispose();
    this.changed.dispose();
  }
}

type MakeLens = (title: string, command: string, where?: vscode.Range, hunk?: number) => vscode.CodeLens;

function running(session: RewriteSession, lens: MakeLens): vscode.CodeLens[] {
  const percent = stepOf(session);
  const words = session.instructions[session.instructions.length - 1] ?? '';
  return [
    lens(`$(loading~spin) ${words}${percent ? ` ${percent} %` : ''}`, ''),
    lens(`$(debug-stop) ${vscode.l10n.t('Cancel')}`, 'lacuna.cancelRewrite'),
  ];
}

function review(session: RewriteSession, lens: MakeLens): vscode.CodeLens[] {
  const t = vscode.l10n.t;
  const all = [
    lens(`$(check-all) ${t('Accept all')}`, 'lacuna.acceptRewrite'),
    lens(`$(discard) ${t('Discard')}`, 'lacuna.discardRewrite'),
    lens(`$(refresh) ${t('Retry')}`, 'lacuna.retryRewrite'),
    lens(`$(comment) ${t('Refine…')}`, 'lacuna.refineRewrite'),
    lens(`$(diff) ${t('Diff')}`, 'lacuna.showDiff'),
  ];
  const each = session.hunks.flatMap((hunk) => {
    const where = toRange({ start: hunk.range.start, end: hunk.range.start });
    const name = t('{0} of {1}', hunk.id + 1, session.hunkCount);
    return [
      lens(`$(check) ${t('Accept {0}', name)}`, 'lacuna.acceptHunk', where, hunk.id),
      lens(`$(close) ${t('Reject {0}', name)}`, 'lacuna.rejectHunk', where, hunk.id),
    ];
  });
  return session.hunkCount > 1 ? [...all, ...each] : all;
}

function stepOf(session: RewriteSession): number {
  return Math.floor((session.percent ?? 0) / PERCENT_STEP) * PERCENT_STEP;
}

/** What of a session its lenses show. */
function faceOf(session: RewriteSession): string {
  const places = [session.range, ...session.hunks.map((hunk) => hunk.range)].map(
    ({ start }) => `${start.line}:${start.character}`,
  );
  return [session.phase, session.asking, stepOf(session), ...places].join(' ');
}
