/** Holds back suggestions while somebody snoozes them. What is off by language the server itself leaves out. */

import * as vscode from 'vscode';
import { Snooze } from './core/snooze';
import { switched } from './core/languageSwitch';
import type { Gate } from './server';

const LATER_MS = 30_000;

export class SuggestionGate implements vscode.Disposable {
  private readonly snooze = new Snooze();
  private readonly changed = new vscode.EventEmitter<void>();
  private timer: NodeJS.Timeout | undefined;
  readonly onChange = this.changed.event;

  /** What the language client asks before each request. */
  readonly middleware: Gate = {
    provideInlineCompletionItems: (document, position, context, token, next) =>
      this.snoozedFor > 0 && context.triggerKind === vscode.InlineCompletionTriggerKind.Automatic
        ? undefined
        : next(document, position, context, token),
    provideCompletionItem: (document, position, context, token, next) =>
      this.snoozedFor > 0 ? undefined : next(document, position, context, token),
  };

  get snoozedFor(): number {
    return this.snooze.left(Date.now());
  }

  /** Asks for how long; wakes when it is asleep. */
  async askToSnooze(): Promise<void> {
    if (this.snoozedFor > 0) {
      this.wake();
      return;
    }
    const choices = [
      { label: vscode.l10n.t('5 minutes'), minutes: 5 },
      { label: vscode.l10n.t('15 minutes'), minutes: 15 },
      { label: vscode.l10n.t('1 hour'), minutes: 60 },
      { label: vscode.l10n.t('Until I wake it, or this window closes'), minutes: Infinity },
    ];
    const title = vscode.l10n.t('Snooze ghost text for');
    const chosen = await vscode.window.showQuickPick(choices, { title });
    if (chosen) {
      this.snoozeFor(chosen.minutes);
    }
  }

  snoozeFor(minutes: number): void {
    this.snooze.begin(Date.now(), minutes);
    void vscode.commands.executeCommand('editor.action.inlineSuggest.hide');
    this.tick();
  }

  wake(): void {
    this.snooze.end();
    this.tick();
  }

  dispose(): void {
    clearTimeout(this.timer);
    this.changed.dispose();
  }

  private tick(): void {
    clearTimeout(this.timer);
    const left = this.snoozedFor;
    if (left > 0 && Number.isFinite(left)) {
      this.timer = setTimeout(
        () => {
          this.tick();
        },
        Math.min(left, LATER_MS),
      );
    }
    this.changed.fire();
  }
}

/** Turns suggestions on or off in the active document's language, where the list of such languages is kept now. */
export async function toggleLanguage(): Promise<void> {
  const document = vscode.window.activeTextEditor?.document;
  if (!document) {
    return;
  }
  const settings = vscode.workspace.getConfiguration('lacuna', document);
  const known = settings.inspect<string[]>('disabledLanguages');
  const target =
    known?.workspaceFolderValue !== undefined
      ? vscode.ConfigurationTarget.WorkspaceFolder
      : known?.workspaceValue !== undefined
        ? vscode.ConfigurationTarget.Workspace
        : vscode.ConfigurationTarget.Global;
  const disabled = settings.get<string[]>('disabledLanguages', []);
  await settings.update('disabledLanguages', switched(disabled, document.languageId), target);
}

/** The active document's language where nothing is suggested in it, else an empty text. */
export function disabledLanguage(): string {
  const document = vscode.window.activeTextEditor?.document;
  const disabled = vscode.workspace.getConfiguration('lacuna', document).get<string[]>('disabledLanguages', []);
  return document && disabled.includes(document.languageId) ? document.languageId : '';
}
