/** The language server's life: found, started, watched, started again. Everything else asks here for the client. */

import * as vscode from 'vscode';
import {
  CloseAction,
  ErrorAction,
  type ErrorHandler,
  LanguageClient,
  type LanguageClientOptions,
  type Middleware,
  RevealOutputChannelOn,
  State,
  type StaticFeature,
} from 'vscode-languageclient/node';
import { Crashes } from './core/crashes';
import { serverSettings } from './core/serverSettings';
import type { Candidate } from './core/serverSearch';
import type { ServerState } from './core/statusView';
import { findServer } from './findServer';
import { DraftNotification, type DraftParams, type ExperimentalCapabilities, StatusNotification } from './protocol';
import type { StatusParams } from './protocol';
import { tell } from './tell';

export const SCHEMES = ['file', 'untitled', 'vscode-notebook-cell'] as const;

const STOP_MS = 3000;
const SLEEPING: StatusParams = { state: 'idle', message: '', remedy: '', percent: null, model: '' };

/** May look at each request for suggestions before the server does. */
export type Gate = Pick<Middleware, 'provideInlineCompletionItems' | 'provideCompletionItem'>;

export class Server implements vscode.Disposable {
  readonly log = vscode.window.createOutputChannel('Lacuna', { log: true });
  state: ServerState = 'stopped';
  remedy = '';
  engine: StatusParams = SLEEPING;
  private client: LanguageClient | undefined;
  private candidate: Candidate | undefined;
  private readonly crashes = new Crashes();
  /** Whether the client answered once since it was made: only then is it started again when it goes down. */
  private hasRun = false;
  private readonly changed = new vscode.EventEmitter<void>();
  private readonly drafted = new vscode.EventEmitter<DraftParams>();
  /** Starts and stops one after another, never two at a time. */
  private queue: Promise<void> = Promise.resolve();
  readonly onChange = this.changed.event;
  readonly onDraft = this.drafted.event;

  constructor(private readonly gate: Gate) {}

  /** The client while the server answers. */
  get running(): LanguageClient | undefined {
    return this.state === 'running' ? this.client : undefined;
  }

  /** The command line for `models`, `doctor` and `trace`; undefined when there is none. */
  async cli(): Promise<readonly string[] | undefined> {
    const candidate = this.candidate ?? (await findServer());
    return candidate?.cli;
  }

  start(): Promise<void> {
    return this.inTurn(() => this.launch());
  }

  stop(): Promise<void> {
    return this.inTurn(() => this.quit('stopped'));
  }

  restart(): Promise<void> {
    this.crashes.forget();
    return this.inTurn(async () => {
      await this.quit('stopped');
      await this.launch();
    });
  }

  dispose(): void {
    void this.stop().finally(() => {
      this.log.dispose();
      this.changed.dispose();
      this.drafted.dispose();
    });
  }

  private inTurn(work: () => Promise<void>): Promise<void> {
    this.queue = this.queue.then(work, work);
    return this.queue;
  }

  private async launch(): Promise<void> {
    if (this.client) {
      return;
    }
    this.candidate = await findServer();
    if (!this.candidate) {
      this.become('missing', vscode.l10n.t('Run "Lacuna: Install", or say in the settings where it is.'));
      return;
    }
    const [command, ...args] = this.withModel(this.candidate);
    this.log.info(`starting ${[command, ...args].join(' ')} (${this.candidate.source})`);
    const client = new QuietClient('lacuna', 'Lacuna', this.executable(command ?? '', args), this.options());
    client.registerFeature(asksFor({ drafts: true, status: true }));
    client.onNotification(DraftNotification, (draft) => {
      this.drafted.fire(draft);
    });
    client.onNotification(StatusNotification, (status) => {
      this.engine = status;
      this.changed.fire();
    });
    client.onDidChangeState(({ newState }) => {
      this.hear(client, newState);
    });
    this.client = client;
    this.hasRun = false;
    this.become('starting');
    try {
      await client.start();
    } catch (fault) {
      this.log.error(String(fault));
      await this.quit('crashed', vscode.l10n.t('Run "Lacuna: Doctor", or look at the log.'));
      void this.tellCrash(vscode.l10n.t('The language server of Lacuna did not start.'));
    }
  }

  private withModel(candidate: Candidate): readonly string[] {
    const model = vscode.workspace.getConfiguration('lacuna.server').get<string>('model', '');
    return model && candidate.source !== 'command' ? [...candidate.server, '--model', model] : candidate.server;
  }

  private executable(command: string, args: string[]) {
    const environment = vscode.workspace
      .getConfiguration('lacuna.server')
      .get<Record<string, string>>('environment', {});
    const cwd = vscode.workspace.workspaceFolders?.find((folder) => folder.uri.scheme === 'file')?.uri.fsPath;
    const options = { env: { ...process.env, ...environment }, ...(cwd && vscode.workspace.isTrusted ? { cwd } : {}) };
    return { command, args, options };
  }

  private options(): LanguageClientOptions {
    return {
      documentSelector: SCHEMES.map((scheme) => ({ scheme })),
      outputChannel: this.log,
      // A request that failed is a line in the log, and nothing that pops up while somebody types.
      revealOutputChannelOn: RevealOutputChannelOn.Never,
      errorHandler: this.errorHandler(),
      initializationFailedHandler: () => false,
      middleware: {
        ...this.gate,
        workspace: {
          configuration: async (params, token, next) => {
            const sections = await next(params, token);
            return Array.isArray(sections) ? sections.map(serverSettings) : sections;
          },
        },
      },
    };
  }

  private errorHandler(): ErrorHandler {
    return {
      error: (_error, _message, count) => ({
        action: (count ?? 0) <= 3 ? ErrorAction.Continue : ErrorAction.Shutdown,
        handled: true,
      }),
      closed: () => {
        this.engine = SLEEPING;
        if (!this.hasRun) {
          // Who starts it hears that it failed, and says so.
          return { action: CloseAction.DoNotRestart, handled: true };
        }
        if (this.crashes.note(Date.now())) {
          return { action: CloseAction.Restart, handled: true };
        }
        this.become('crashed', vscode.l10n.t('Run "Lacuna: Doctor", or look at the log.'));
        void this.tellCrash(vscode.l10n.t('The language server of Lacuna keeps stopping.'));
        return { action: CloseAction.DoNotRestart, handled: true };
      },
    };
  }

  private async tellCrash(message: string): Promise<void> {
    const [log, again] = [vscode.l10n.t('Show log'), vscode.l10n.t('Restart')];
    const answer = await tell('error', message, log, again);
    if (answer === log) {
      this.log.show();
    } else if (answer === again) {
      await this.restart();
    }
  }

  private hear(client: LanguageClient, state: State): void {
    if (client !== this.client || this.state === 'crashed') {
      return;
    }
    if (state === State.Running) {
      this.hasRun = true;
      this.become('running');
    } else {
      this.become('starting');
    }
  }

  private async quit(state: ServerState, remedy = ''): Promise<void> {
    const client = this.client;
    this.client = undefined;
    this.engine = SLEEPING;
    this.become(state, remedy);
    if (!client) {
      return;
    }
    try {
      await client.dispose(STOP_MS);
    } catch (fault) {
      // It was not running, or would not stop in time: its process is ended either way.
      this.log.debug(String(fault));
    }
  }

  private become(state: ServerState, remedy = ''): void {
    this.state = state;
    this.remedy = remedy;
    void vscode.commands.executeCommand('setContext', 'lacuna.running', state === 'running');
    this.changed.fire();
  }
}

/** A client that writes what goes wrong into the log alone: what a person must know the `Server` says, once. */
class QuietClient extends LanguageClient {
  override error(message: string, data?: unknown): void {
    super.error(message, data, false);
  }
}

/** Says in `initialize` which notifications of Lacuna's own are wanted. */
function asksFor(lacuna: ExperimentalCapabilities): StaticFeature {
  return {
    fillClientCapabilities: (capabilities) => {
      const others = capabilities.experimental as Record<string, unknown> | undefined;
      capabilities.experimental = { ...others, lacuna };
    },
    initialize: () => undefined,
    getState: () => ({ kind: 'static' }),
    clear: () => undefined,
  };
}
