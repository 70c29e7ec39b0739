/** Where VS Code comes in: puts the parts together and names the commands. */

import * as vscode from 'vscode';
import { Doctor } from './doctor';
import { fillHoles, fillSelection } from './fill';
import { SuggestionGate, toggleLanguage } from './gate';
import { Installation } from './install';
import { offerMissingModel, pickModel } from './models';
import { registerRewriteCommands } from './rewrite/commands';
import { trackContext } from './rewrite/contextKeys';
import { Decorations } from './rewrite/decorations';
import { Lenses } from './rewrite/lenses';
import { Proposals } from './rewrite/proposals';
import { Rewrites } from './rewrite/rewrites';
import { SCHEMES, Server } from './server';
import { StatusBar, showMenu } from './statusBar';
import { showTrace } from './trace';

const RESTARTING = ['command', 'interpreter', 'model', 'environment'].map((name) => `lacuna.server.${name}`);

/** Trust and the settings that it lets in come one after the other, and so do several settings: one restart is enough. */
const SETTLE_MS = 300;

/** What other extensions, and the tests, may use. */
export interface Api {
  readonly server: Server;
  readonly rewrites: Rewrites;
}

let server: Server | undefined;

export function activate(context: vscode.ExtensionContext): Api {
  const gate = new SuggestionGate();
  const started = new Server(gate.middleware);
  server = started;
  const rewrites = new Rewrites(started);
  const proposals = new Proposals(rewrites);
  const installation = new Installation(started);
  const doctor = new Doctor(started);
  const status = new StatusBar(started, gate, rewrites);
  const views = [new Decorations(rewrites), new Lenses(rewrites), status];
  const command = (name: string, act: () => unknown) => vscode.commands.registerCommand(name, act);
  context.subscriptions.push(
    gate,
    rewrites,
    proposals,
    installation,
    doctor,
    ...views,
    registerRewriteCommands(rewrites, proposals),
    trackContext(rewrites, proposals),
    command('lacuna.fillHoles', () => fillHoles(started)),
    command('lacuna.fillSelection', () => fillSelection(started)),
    command('lacuna.menu', () => showMenu(started, gate)),
    command('lacuna.snooze', () => gate.askToSnooze()),
    command('lacuna.toggleLanguage', toggleLanguage),
    command('lacuna.showTrace', () => showTrace(started)),
    command('lacuna.pickModel', () => pickModel(started)),
    command('lacuna.restart', () => started.restart()),
    command('lacuna.doctor', () => doctor.examine()),
    command('lacuna.install', () => installation.install()),
    command('lacuna.showLog', () => {
      started.log.show();
    }),
    offerMissingModel(started),
    ...startWhenWanted(started),
  );
  return { server: started, rewrites };
}

export async function deactivate(): Promise<void> {
  await server?.stop();
}

/** The server is started with the first text it can do something for, and again when what starts it changes. */
function startWhenWanted(started: Server): vscode.Disposable[] {
  let isWanted = false;
  const start = (document: vscode.TextDocument) => {
    if (!isWanted && SCHEMES.some((scheme) => scheme === document.uri.scheme)) {
      isWanted = true;
      void started.start();
    }
  };
  let settling: NodeJS.Timeout | undefined;
  const restart = () => {
    clearTimeout(settling);
    settling = setTimeout(() => {
      if (isWanted) {
        void started.restart();
      }
    }, SETTLE_MS);
  };
  vscode.workspace.textDocuments.forEach(start);
  return [
    new vscode.Disposable(() => {
      clearTimeout(settling);
    }),
    vscode.workspace.onDidOpenTextDocument(start),
    vscode.workspace.onDidGrantWorkspaceTrust(restart),
    vscode.workspace.onDidChangeConfiguration((event) => {
      if (RESTARTING.some((name) => event.affectsConfiguration(name))) {
        restart();
      }
    }),
  ];
}
