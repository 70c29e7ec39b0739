/** A code-server of this run's own: fresh folders, loopback only, nothing asked of any other machine. */
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, cpSync, mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import path from 'node:path';
import { codeServerEntry } from './places.ts';
import { eventually } from './wait.ts';

export interface CodeServerOptions {
  /** Everything it writes lies in here. */
  readonly root: string;
  /** Unpacked extensions, copied: name of the folder → where from. */
  readonly extensions: Readonly<Record<string, string>>;
  /** Settings of scope machine, such as the server's command. */
  readonly machineSettings: Readonly<Record<string, unknown>>;
  readonly userSettings?: Readonly<Record<string, unknown>>;
  readonly environment?: Readonly<Record<string, string>>;
  /** Lets a page name an extension under development and its tests. */
  readonly development?: boolean;
  /** No folder is trusted until somebody says so, as it is on a person's machine. */
  readonly asksForTrust?: boolean;
}

const QUIET = {
  'telemetry.telemetryLevel': 'off',
  'workbench.startupEditor': 'none',
  'workbench.enableExperiments': false,
  'workbench.tips.enabled': false,
  'workbench.reduceMotion': 'on',
  'workbench.secondarySideBar.defaultVisibility': 'hidden',
  'workbench.layoutControl.enabled': false,
  'workbench.welcomePage.walkthroughs.openOnInstall': false,
  'chat.disableAIFeatures': true,
  'extensions.autoCheckUpdates': false,
  'extensions.autoUpdate': 'off',
  'extensions.ignoreRecommendations': true,
  'git.enabled': false,
  'editor.inlineSuggest.enabled': true,
  'editor.minimap.enabled': false,
  'editor.wordBasedSuggestions': 'off',
  'editor.quickSuggestions': { other: 'off', comments: 'off', strings: 'off' },
  'files.hotExit': 'off',
  // In a browser VS Code saves by itself after a second; a person's does not.
  'files.autoSave': 'off',
} as const;

export class CodeServer {
  readonly url: string;
  readonly probes: string;
  private readonly process: ChildProcess;
  private readonly logFile: string;

  private constructor(url: string, probes: string, process: ChildProcess, logFile: string) {
    this.url = url;
    this.probes = probes;
    this.process = process;
    this.logFile = logFile;
  }

  static async start(options: CodeServerOptions): Promise<CodeServer> {
    const { root } = options;
    const [data, extensions, probes] = ['data', 'extensions', 'probes'].map((name) => path.join(root, name)) as [string, string, string];
    for (const folder of [probes, extensions, path.join(data, 'User'), path.join(data, 'Machine')]) mkdirSync(folder, { recursive: true });
    for (const [name, from] of Object.entries(options.extensions)) cpSync(from, path.join(extensions, name), { recursive: true });
    writeFileSync(path.join(data, 'User/settings.json'), JSON.stringify({ ...QUIET, 'security.workspace.trust.enabled': options.asksForTrust ?? false, ...options.userSettings }));
    writeFileSync(path.join(data, 'Machine/settings.json'), JSON.stringify(options.machineSettings));
    const port = await freePort();
    const logFile = path.join(root, 'server.log');
    const log = openSync(logFile, 'a');
    const process = spawn(globalThis.process.execPath, [codeServerEntry(), ...switches(options, port, data, extensions)], {
      stdio: ['ignore', log, log],
      env: { ...globalThis.process.env, ...options.environment, LACUNA_PROBE_DIR: probes, EXTENSIONS_GALLERY: '{"serviceUrl":""}', CS_DISABLE_GETTING_STARTED_OVERRIDE: '1' },
    });
    closeSync(log);
    const server = new CodeServer(`http://127.0.0.1:${port}`, probes, process, logFile);
    await eventually('code-server to listen', async () => {
      if (process.exitCode !== null) throw new Error(`code-server left with ${process.exitCode}: ${server.log()}`);
      return (await fetch(`${server.url}/healthz`)).ok;
    });
    return server;
  }

  log(): string {
    return readFileSync(this.logFile, 'utf8');
  }

  /** Ends it, and with it its extension hosts and their language servers. */
  async stop(): Promise<void> {
    if (this.process.exitCode !== null) return;
    const gone = new Promise((resolve) => this.process.once('exit', resolve));
    this.process.kill('SIGTERM');
    await gone;
  }
}

function switches(options: CodeServerOptions, port: number, data: string, extensions: string): string[] {
  return [
    ...['--config', path.join(options.root, 'config.yaml'), '--bind-addr', `127.0.0.1:${port}`, '--auth', 'none'],
    ...['--user-data-dir', data, '--extensions-dir', extensions],
    ...['--disable-telemetry', '--disable-update-check', '--disable-getting-started-override'],
    ...['--disable-proxy', '--ignore-last-opened'],
    ...(options.asksForTrust ? [] : ['--disable-workspace-trust']),
    ...(options.development ? ['--vscode-option', 'enable-smoke-test-driver'] : []),
  ];
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.on('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' && address !== null ? address.port : 0));
    });
  });
}
