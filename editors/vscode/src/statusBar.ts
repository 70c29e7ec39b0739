/** The item in the status bar, and the menu behind it. */

import * as vscode from 'vscode';
import { type Severity, statusView } from './core/statusView';
import { type SuggestionGate, disabledLanguage } from './gate';
import type { Rewrites } from './rewrite/rewrites';
import type { Server } from './server';

const BACKGROUNDS: Record<Severity, string | undefined> = {
  plain: undefined,
  warning: 'statusBarItem.warningBackground',
  error: 'statusBarItem.errorBackground',
};

export class StatusBar implements vscode.Disposable {
  private readonly item = vscode.window.createStatusBarItem('lacuna.status', vscode.StatusBarAlignment.Right, 100);
  private readonly listening: vscode.Disposable;

  constructor(
    private readonly server: Server,
    private readonly gate: SuggestionGate,
    private readonly rewrites: Rewrites,
  ) {
    this.item.name = 'Lacuna';
    this.item.command = 'lacuna.menu';
    const draw = () => {
      this.draw();
    };
    this.listening = vscode.Disposable.from(
      server.onChange(draw),
      gate.onChange(draw),
      rewrites.onChange(draw),
      vscode.window.onDidChangeActiveTextEditor(draw),
      vscode.workspace.onDidChangeConfiguration((event) => {
        if (event.affectsConfiguration('lacuna')) {
          draw();
        }
      }),
    );
    draw();
    this.item.show();
  }

  dispose(): void {
    this.listening.dispose();
    this.item.dispose();
  }

  private draw(): void {
    const { server, gate, rewrites } = this;
    const view = statusView(
      {
        server: server.state,
        remedy: server.remedy,
        engine: server.engine,
        snoozedFor: gate.snoozedFor,
        disabledLanguage: disabledLanguage(),
        rewrites: rewrites.runningCount,
      },
      vscode.l10n.t,
    );
    const background = BACKGROUNDS[view.severity];
    this.item.text = view.text;
    this.item.tooltip = view.tooltip;
    this.item.backgroundColor = background === undefined ? undefined : new vscode.ThemeColor(background);
    this.item.accessibilityInformation = { label: view.tooltip };
    void vscode.commands.executeCommand('setContext', 'lacuna.ready', server.engine.state === 'ready');
  }
}

/** What can be done about Lacuna, as a list to choose from. */
export async function showMenu(server: Server, gate: SuggestionGate): Promise<void> {
  const t = vscode.l10n.t;
  const language = vscode.window.activeTextEditor?.document.languageId;
  const off = disabledLanguage();
  const entries = [
    server.state === 'missing' && { label: t('$(desktop-download) Install…'), command: 'lacuna.install' },
    {
      label: gate.snoozedFor > 0 ? t('$(bell) Wake ghost text') : t('$(bell-slash) Snooze…'),
      command: 'lacuna.snooze',
    },
    language !== undefined && {
      label: off ? t('$(check) Turn on in {0}', language) : t('$(circle-slash) Turn off in {0}', language),
      command: 'lacuna.toggleLanguage',
    },
    { label: t('$(package) Choose a model…'), command: 'lacuna.pickModel' },
    { label: t('$(play-circle) Show trace'), command: 'lacuna.showTrace' },
    { label: t('$(pulse) Doctor'), command: 'lacuna.doctor' },
    { label: t('$(output) Show log'), command: 'lacuna.showLog' },
    { label: t('$(refresh) Restart'), command: 'lacuna.restart' },
  ];
  const choices = entries.filter((entry) => typeof entry === 'object');
  const remedy = server.state === 'running' ? server.engine.remedy : server.remedy;
  const chosen = await vscode.window.showQuickPick(choices, { title: 'Lacuna', placeHolder: remedy });
  if (chosen) {
    await vscode.commands.executeCommand(chosen.command);
  }
}
