/** The commands of inline rewrites. Without an argument they are about the rewrite, and the hunk, at the cursor. */

import * as vscode from 'vscode';
import { nearestHunk, nearestPlace, needsDiff } from '../core/hunks';
import type { RewriteSession } from '../core/rewriteSession';
import { tell } from '../tell';
import { toRange } from './conversion';
import type { Proposals } from './proposals';
import type { Rewrites } from './rewrites';

/** What lenses and links say: numbers of a session and of one of its hunks. */
interface Argument {
  readonly session?: number;
  readonly hunk?: number;
}

export function registerRewriteCommands(rewrites: Rewrites, proposals: Proposals): vscode.Disposable {
  const meant = new Meant(rewrites, proposals);
  const on = (name: string, act: (session: RewriteSession, argument: unknown) => unknown) =>
    vscode.commands.registerCommand(name, async (argument: unknown) => {
      const session = meant.session(argument);
      await (session && act(session, argument));
    });
  const idsOf = (session: RewriteSession) => session.hunks.map((hunk) => hunk.id);
  return vscode.Disposable.from(
    vscode.commands.registerCommand('lacuna.inlineRewrite', (instruction: unknown) =>
      begin(rewrites, proposals, instruction),
    ),
    on('lacuna.cancelRewrite', (session) => {
      rewrites.close(session);
    }),
    on('lacuna.discardRewrite', (session) => {
      rewrites.close(session);
    }),
    on('lacuna.acceptRewrite', (session) => rewrites.accept(session, idsOf(session))),
    on('lacuna.acceptHunk', async (session, argument) => {
      await rewrites.accept(session, await meant.hunk(session, argument));
    }),
    on('lacuna.rejectHunk', async (session, argument) => {
      rewrites.reject(session, await meant.hunk(session, argument));
    }),
    on('lacuna.retryRewrite', (session) => {
      rewrites.retry(session);
    }),
    on('lacuna.refineRewrite', (session) => refine(rewrites, session)),
    on('lacuna.showDiff', (session) => proposals.show(session)),
  );
}

class Meant {
  constructor(
    private readonly rewrites: Rewrites,
    private readonly proposals: Proposals,
  ) {}

  session(argument: unknown): RewriteSession | undefined {
    const { session } = asArgument(argument);
    if (session !== undefined) {
      return this.rewrites.get(session);
    }
    const editor = vscode.window.activeTextEditor;
    return (
      editor &&
      (this.proposals.sessionOf(editor.document.uri) ?? this.rewrites.at(editor.document.uri, editor.selection.active))
    );
  }

  /** The ids of the hunk that is meant: one, or none. */
  async hunk(session: RewriteSession, argument: unknown): Promise<number[]> {
    const { hunk } = asArgument(argument);
    const id = hunk ?? (await this.hunkAtCursor(session));
    return id === undefined ? [] : [id];
  }

  private async hunkAtCursor(session: RewriteSession): Promise<number | undefined> {
    const editor = vscode.window.activeTextEditor;
    if (!editor) {
      return undefined;
    }
    const { document, selection } = editor;
    return this.proposals.sessionOf(document.uri)
      ? nearestPlace(await this.proposals.places(session), document.offsetAt(selection.active))
      : nearestHunk(session.hunks, selection.active);
  }
}

/** VS Code gives commands in menus the resource as their argument: that is none of ours. */
function asArgument(argument: unknown): Argument {
  return typeof argument === 'object' && argument !== null && 'session' in argument ? (argument as Argument) : {};
}

async function begin(rewrites: Rewrites, proposals: Proposals, given: unknown): Promise<void> {
  const editor = vscode.window.activeTextEditor;
  const range = editor && toRewrite(editor);
  if (!editor || !range) {
    void tell('info', vscode.l10n.t('Select the text to rewrite.'));
    return;
  }
  const asked = editor.selection;
  const { version } = editor.document;
  const instruction = typeof given === 'string' ? given : await askFor(vscode.l10n.t('What is to change in it?'));
  if (!instruction?.trim()) {
    return;
  }
  if (editor.document.version !== version) {
    void tell('warning', vscode.l10n.t('The text changed meanwhile, and was left as it is. Select it and try again.'));
    return;
  }
  const session = rewrites.begin(editor.document, range, instruction.trim());
  const stay = new Stay(editor, asked);
  let isFinished = false;
  const listening = vscode.Disposable.from(
    rewrites.onFinish((finished) => {
      if (finished === session) {
        isFinished = true;
        void showIfWanted(proposals, session, stay.lasts);
      }
    }),
    rewrites.onChange((changed) => {
      if (changed === session && session.phase === 'closed') {
        listening.dispose();
        if (!isFinished) {
          stay.giveBack();
        }
      }
    }),
  );
}

/**
 * A person who waits where they asked. Whoever went on working elsewhere must not have the keyboard taken away.
 *
 * Meanwhile nothing is selected: a draft is drawn over the text it stands for, which is as narrow as can be, and the
 * colour of a selection, and its marks for blanks, would stand behind it in stripes.
 */
class Stay {
  private readonly waiting: vscode.Selection;
  private readonly version: number;

  constructor(
    private readonly editor: vscode.TextEditor,
    private readonly asked: vscode.Selection,
  ) {
    this.version = editor.document.version;
    // Whoever has selected something else since then keeps that.
    if (!asked.isEmpty && editor.selection.isEqual(asked)) {
      editor.selection = new vscode.Selection(asked.start, asked.start);
      this.waiting = editor.selection;
    } else {
      this.waiting = asked;
    }
  }

  get lasts(): boolean {
    const active = vscode.window.activeTextEditor;
    return (
      active?.document === this.editor.document &&
      active.selection.isEqual(this.waiting) &&
      active.document.version === this.version
    );
  }

  /** Select again what was selected: nothing came of it, and it may be asked for in other words. */
  giveBack(): void {
    const active = vscode.window.activeTextEditor;
    if (active && this.lasts) {
      active.selection = this.asked;
    }
  }
}

function toRewrite({ document, selection }: vscode.TextEditor): vscode.Range | undefined {
  if (!selection.isEmpty) {
    return new vscode.Range(selection.start, selection.end);
  }
  const line = document.lineAt(selection.active);
  return line.isEmptyOrWhitespace ? undefined : line.range;
}

async function refine(rewrites: Rewrites, session: RewriteSession): Promise<void> {
  const instruction = await askFor(vscode.l10n.t('What else is to change?'));
  if (instruction?.trim() && session.phase !== 'closed') {
    rewrites.refine(session, instruction.trim());
  }
}

function askFor(prompt: string): Thenable<string | undefined> {
  return vscode.window.showInputBox({
    title: vscode.l10n.t('Lacuna: rewrite'),
    prompt,
    placeHolder: vscode.l10n.t('Return None when b is zero.'),
    ignoreFocusOut: true,
  });
}

async function showIfWanted(proposals: Proposals, session: RewriteSession, stayed: boolean): Promise<void> {
  const when = vscode.workspace.getConfiguration('lacuna.review').get<string>('openDiff', 'auto');
  if (stayed && (when === 'always' || (when === 'auto' && needsDiff(session.hunks)))) {
    await proposals.show(session);
  } else {
    reveal(session);
  }
}

/** Shows the first hunk where its document is in sight and it is not. */
function reveal(session: RewriteSession): void {
  const active = vscode.window.activeTextEditor;
  const [first] = session.hunks;
  if (
    first &&
    active?.document.uri.toString() === session.uri &&
    active.selection.intersection(toRange(session.range))
  ) {
    active.revealRange(toRange(first.range), vscode.TextEditorRevealType.InCenterIfOutsideViewport);
  }
}
