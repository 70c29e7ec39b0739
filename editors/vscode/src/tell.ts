/** Says something to a person, once, in the tone that it deserves. */

import * as vscode from 'vscode';
import { type Tone, saidOf } from './core/faults';
import { hasOwnCommand } from './findServer';

const VOICES: Record<Tone, (message: string, ...answers: string[]) => Thenable<string | undefined>> = {
  info: (message, ...answers) => vscode.window.showInformationMessage(message, ...answers),
  warning: (message, ...answers) => vscode.window.showWarningMessage(message, ...answers),
  error: (message, ...answers) => vscode.window.showErrorMessage(message, ...answers),
};

/** The answer that was chosen; undefined when there was none. */
export function tell(tone: Tone, message: string, ...answers: string[]): Thenable<string | undefined> {
  return VOICES[tone](`Lacuna: ${message}`, ...answers);
}

/** Says what went wrong, unless somebody wanted it so. */
export function tellFault(fault: unknown): void {
  const said = saidOf(fault, vscode.l10n.t);
  if (said) {
    void tell(said.tone, said.message);
  }
}

/** There is no program to ask: says why, and offers to install it where there is none at all. */
export async function tellMissing(): Promise<void> {
  if (hasOwnCommand()) {
    void tell('warning', vscode.l10n.t('The configured command does not say where the program "lacuna" is.'));
    return;
  }
  const install = vscode.l10n.t('Install…');
  const why = vscode.l10n.t('The program "lacuna" was not found on this machine.');
  if ((await tell('warning', why, install)) === install) {
    await vscode.commands.executeCommand('lacuna.install');
  }
}
