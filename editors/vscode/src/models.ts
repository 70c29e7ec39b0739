/** `Lacuna: Choose a model`: what there is, what is here, and a download that somebody said yes to. */

import * as vscode from 'vscode';
import { call } from './cli';
import { type Model, type PullEvent, parseModels, parsePullLine, shownSize } from './core/modelList';
import type { Server } from './server';
import { tell, tellFault, tellMissing } from './tell';

export async function pickModel(server: Server): Promise<void> {
  const cli = await server.cli();
  if (!cli) {
    await tellMissing();
    return;
  }
  const models = await listed(cli).catch(tellFault);
  if (!models) {
    return;
  }
  const current = chosenName();
  const entries = models.map((model) => entry(model, current));
  const chosen = await vscode.window.showQuickPick(entries, {
    title: vscode.l10n.t('Lacuna: choose a model'),
    matchOnDescription: true,
    matchOnDetail: true,
  });
  if (chosen && (chosen.model.isHere || (await isPulled(cli, chosen.model)))) {
    await use(server, chosen.model);
  }
}

/**
 * When the engine cannot be used since its model is not here, offers to download it. Once a window: whoever said no has
 * the command.
 */
export function offerMissingModel(server: Server): vscode.Disposable {
  const listening = server.onChange(() => {
    if (server.state === 'running' && server.engine.state === 'failed') {
      listening.dispose();
      void offer(server);
    }
  });
  return listening;
}

async function offer(server: Server): Promise<void> {
  const cli = await server.cli();
  // Nobody asked for a list: where there is none, the status says what is wrong.
  const models = cli && (await listed(cli).catch(() => undefined));
  if (!cli || !models) {
    return;
  }
  const name = chosenName();
  const model = models.find((one) => (name ? one.name === name : one.isDefault));
  if (model && !model.isHere && (await isPulled(cli, model))) {
    await server.restart();
  }
}

/** Raises an Error that says why there is no list. */
async function listed(cli: readonly string[]): Promise<Model[]> {
  const { stdout, stderr, code } = await call(cli, ['models', 'list', '--json']);
  if (code !== 0) {
    throw new Error(stderr.trim());
  }
  return parseModels(stdout, vscode.l10n.t);
}

function chosenName(): string {
  return vscode.workspace.getConfiguration('lacuna.server').get<string>('model', '');
}

function entry(model: Model, current: string): vscode.QuickPickItem & { model: Model } {
  const isCurrent = current ? model.name === current : model.isDefault;
  const size = model.size === null ? '' : shownSize(model.size);
  const here = model.isHere ? vscode.l10n.t('here') : vscode.l10n.t('to be downloaded');
  return {
    label: `${isCurrent ? '$(check) ' : ''}${model.name}`,
    description: [here, size, model.licence].filter(Boolean).join(' · '),
    detail: model.description,
    model,
  };
}

/** Asks, downloads, and says whether the model is here then. */
async function isPulled(cli: readonly string[], model: Model): Promise<boolean> {
  const t = vscode.l10n.t;
  const size = model.size === null ? t('size not known') : shownSize(model.size);
  const yes = t('Download');
  const question = t('Download {0} ({1})?', model.name, size);
  if ((await vscode.window.showInformationMessage(question, yes)) !== yes) {
    return false;
  }
  const title = t('Lacuna: downloading {0}', model.name);
  const location = vscode.ProgressLocation.Notification;
  return vscode.window.withProgress({ location, title, cancellable: true }, (progress, cancel) =>
    pull(cli, model, progress, cancel),
  );
}

async function pull(
  cli: readonly string[],
  model: Model,
  progress: vscode.Progress<{ message?: string; increment?: number }>,
  cancel: vscode.CancellationToken,
): Promise<boolean> {
  let percent = 0;
  let fault: Extract<PullEvent, { event: 'error' }> | undefined;
  const hear = (line: string) => {
    const event = parsePullLine(line);
    if (event?.event === 'progress' && event.total > 0) {
      const now = (100 * event.done) / event.total;
      // Each stage counts from nothing; the bar only ever grows.
      const message = `${event.stage} ${shownSize(event.done)} / ${shownSize(event.total)}`.trim();
      progress.report({ message, increment: Math.max(now - percent, 0) });
      percent = Math.max(now, percent);
    } else if (event?.event === 'error') {
      fault = event;
    }
  };
  const { code, stderr } = await call(cli, ['models', 'pull', model.name, '--json'], { hear, cancel });
  if (cancel.isCancellationRequested) {
    return false;
  }
  if (code !== 0 || fault) {
    void tell('error', fault ? [fault.message, fault.remedy].filter(Boolean).join(' ') : stderr.trim());
    return false;
  }
  return true;
}

async function use(server: Server, model: Model): Promise<void> {
  const settings = vscode.workspace.getConfiguration('lacuna.server');
  const name = model.isDefault ? undefined : model.name;
  if (settings.get<string>('model', '') !== (name ?? '')) {
    // The change of the setting starts the server again.
    await settings.update('model', name, vscode.ConfigurationTarget.Global);
  } else {
    await server.restart();
  }
}
