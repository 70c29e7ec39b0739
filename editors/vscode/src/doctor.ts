/** `Lacuna: Doctor`: what `lacuna doctor` finds on the machine where the server runs, as a page. */

import * as vscode from 'vscode';
import { call } from './cli';
import { doctorPage, doctorReport } from './core/doctorReport';
import { messageOf } from './core/faults';
import { hasOwnCommand } from './findServer';
import type { Server } from './server';

const REPORT = vscode.Uri.parse('lacuna-report:Doctor.md');

export class Doctor implements vscode.TextDocumentContentProvider, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<vscode.Uri>();
  private readonly registration = vscode.workspace.registerTextDocumentContentProvider(REPORT.scheme, this);
  private report = '';
  readonly onDidChange = this.changed.event;

  constructor(private readonly server: Server) {}

  provideTextDocumentContent(): string {
    return this.report;
  }

  async examine(): Promise<void> {
    const cli = await this.server.cli();
    this.report = cli ? await this.ask(cli) : this.withoutProgram();
    this.changed.fire(REPORT);
    await vscode.commands.executeCommand('markdown.showPreview', REPORT);
  }

  dispose(): void {
    this.registration.dispose();
    this.changed.dispose();
  }

  private async ask(cli: readonly string[]): Promise<string> {
    const title = vscode.l10n.t('Lacuna: looking at this machine');
    const location = vscode.ProgressLocation.Notification;
    return vscode.window.withProgress({ location, title, cancellable: true }, async (_progress, cancel) => {
      try {
        const { stdout, stderr } = await call(cli, ['doctor', '--json'], { cancel });
        return stdout.trim() ? doctorReport(stdout, vscode.l10n.t) : doctorPage(stderr, vscode.l10n.t);
      } catch (fault) {
        return doctorPage(messageOf(fault), vscode.l10n.t);
      }
    });
  }

  private withoutProgram(): string {
    const why = hasOwnCommand()
      ? vscode.l10n.t('The configured command does not say where the program "lacuna" is.')
      : vscode.l10n.t('The program "lacuna" was not found on this machine. Run "Lacuna: Install".');
    return doctorPage(why, vscode.l10n.t);
  }
}
