/** Offers to install the server where there is none. Shows the exact command, and runs it only when told to. */

import * as vscode from 'vscode';
import { installCommand, installShell } from './core/installCommand';
import { here } from './findServer';
import type { Server } from './server';
import { tell } from './tell';

/** Once a window: whoever said no must not be asked with every file. */
export class Installation implements vscode.Disposable {
  private hasOffered = false;
  private readonly listening: vscode.Disposable;
  private terminal: vscode.Terminal | undefined;

  constructor(private readonly server: Server) {
    this.listening = vscode.Disposable.from(
      server.onChange(() => {
        if (server.state === 'missing' && !this.hasOffered) {
          this.hasOffered = true;
          void this.offer();
        }
      }),
      vscode.window.onDidCloseTerminal((terminal) => {
        if (terminal === this.terminal) {
          void server.restart();
        }
      }),
    );
  }

  /** Says that nothing was found, and what can be done about it. */
  async offer(): Promise<void> {
    const t = vscode.l10n.t;
    const [install, settings] = [t('Install…'), t('Settings')];
    const message = t('The program "lacuna" was not found on this machine. Say where it is, or install it.');
    const answer = await tell('info', message, install, settings);
    if (answer === install) {
      await this.install();
    } else if (answer === settings) {
      await vscode.commands.executeCommand('workbench.action.openSettings', 'lacuna.server');
    }
  }

  /** Asks what to install from, shows the command, and runs it in a terminal when told to. */
  async install(): Promise<void> {
    const t = vscode.l10n.t;
    const source = await this.chooseSource();
    if (!source) {
      return;
    }
    const command = installCommand(here(), source);
    const [run, copy] = [t('Run in a terminal'), t('Copy')];
    const answer = await tell('info', t('It is installed with: {0}', command), run, copy);
    if (answer === run) {
      const shellPath = installShell(process.platform);
      this.terminal = vscode.window.createTerminal({ name: 'Lacuna', ...(shellPath ? { shellPath } : {}) });
      this.terminal.show();
      this.terminal.sendText(command);
      await this.offerStart();
    } else if (answer === copy) {
      await vscode.env.clipboard.writeText(command);
    }
  }

  dispose(): void {
    this.listening.dispose();
  }

  private async chooseSource(): Promise<string | undefined> {
    const folder = vscode.l10n.t('Folder of a checkout…');
    const wheel = vscode.l10n.t('Wheel…');
    const title = vscode.l10n.t('Install Lacuna from');
    const kind = await vscode.window.showQuickPick([folder, wheel], { title });
    if (kind === undefined) {
      return undefined;
    }
    const chosen = await vscode.window.showOpenDialog({
      title,
      canSelectFolders: kind === folder,
      canSelectFiles: kind === wheel,
      ...(kind === wheel ? { filters: { [vscode.l10n.t('Wheels')]: ['whl'] } } : {}),
    });
    return chosen?.[0]?.fsPath;
  }

  private async offerStart(): Promise<void> {
    const start = vscode.l10n.t('Start');
    const message = vscode.l10n.t('Start it once the installation in the terminal is done.');
    if ((await tell('info', message, start)) === start) {
      await this.server.restart();
    }
  }
}
