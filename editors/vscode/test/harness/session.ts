/** One run of the workbench for many stories: starting it costs more than most of them. */
import { execFileSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Chromium } from './browser.ts';
import { CodeServer, type CodeServerOptions } from './code_server.ts';
import { extensionFolder, mediaFolder, probeFolder, python, pythonPath, repository, steeredServer } from './places.ts';
import { type Script, Steering } from './steering.ts';
import { eventually } from './wait.ts';
import { Workbench } from './workbench.ts';

/** Pictures that the README shows, and the package therefore holds. */
const SHOWN = new Set(['ghost-text', 'rewrite-running', 'rewrite-review', 'rewrite-diff', 'holes-filled']);

export class Session {
  readonly root: string;
  readonly steering: Steering;
  readonly server: CodeServer;
  readonly chromium: Chromium;
  workspace: string;
  workbench: Workbench;
  private engine: Script['engine'] = 'scripted';

  private constructor(root: string, workspace: string, steering: Steering, server: CodeServer, chromium: Chromium, workbench: Workbench) {
    this.root = root;
    this.workspace = workspace;
    this.steering = steering;
    this.server = server;
    this.chromium = chromium;
    this.workbench = workbench;
  }

  /** A workbench with the extension and a server that answers. */
  static async start(): Promise<Session> {
    const session = await Session.open((root, steering) => ({
      extensions: { lacuna: unpacked(root), 'lacuna-probe': probeFolder },
      // What a rewrite changes is decided in the text; the stories about diffs say so themselves.
      userSettings: { 'lacuna.review.openDiff': 'never' },
      machineSettings: { 'lacuna.server.command': steeredServer(steering.folder) },
      environment: { ...pythonPath(), LACUNA_HOME: emptyHome(root) },
    }));
    // The first text wakes the server.
    await session.file('first.py', '');
    await session.workbench.lacunaSays(/is ready|sleeps/, 60_000);
    await session.workbench.hasSettings();
    return session;
  }

  /** A workbench with a folder `project`, and around it what `surroundings` says. */
  static async open(surroundings: (root: string, steering: Steering) => Omit<CodeServerOptions, 'root'>): Promise<Session> {
    const root = mkdtempSync(path.join(tmpdir(), 'lacuna-vscode-'));
    const workspace = path.join(root, 'project');
    mkdirSync(workspace);
    const steering = new Steering(path.join(root, 'steering'));
    const server = await CodeServer.start({ root, ...surroundings(root, steering) });
    const chromium = await Chromium.start();
    const workbench = await Workbench.open(await chromium.window(), server, workspace);
    return new Session(root, workspace, steering, server, chromium, workbench);
  }

  /** The same window with another folder of this run in it. */
  async move(name: string): Promise<Workbench> {
    this.workspace = path.join(this.root, name);
    mkdirSync(this.workspace, { recursive: true });
    this.workbench = await Workbench.open(this.workbench.page, this.server, this.workspace);
    return this.workbench;
  }

  /** A file in the workspace, opened; its path. */
  async file(name: string, content: string): Promise<string> {
    const file = path.join(this.workspace, name);
    mkdirSync(path.dirname(file), { recursive: true });
    writeFileSync(file, content);
    await this.workbench.documents.open(name);
    return file;
  }

  /** Starts the language server again, with another script; waits until it answers. */
  async restart(script: Script, patience?: number): Promise<void> {
    const before = this.steering.servers().length;
    this.steering.set(script);
    this.engine = script.engine ?? 'scripted';
    await this.workbench.probe.evaluate((vscode) => vscode.commands.executeCommand('lacuna.restart'), undefined);
    await eventually('another server', () => this.steering.servers().length > before);
    await this.workbench.lacunaSays(/is ready|sleeps|starting|loading/, patience);
    await this.workbench.hasSettings();
  }

  /** Back to the scripted engine, when the story before had another. */
  async scripted(): Promise<void> {
    if (this.engine !== 'scripted') await this.restart({});
    this.steering.set({});
  }

  /** A picture of the window: beside the run, and among the extension's own only when a person asked for that. */
  async picture(name: string, workbench: Workbench = this.workbench): Promise<void> {
    const folder = process.env.LACUNA_TEST_PICTURES ?? path.join(this.root, 'pictures');
    mkdirSync(folder, { recursive: true });
    const file = path.join(folder, `${name}.png`);
    await workbench.page.screenshot({ path: file });
    if (process.env.LACUNA_UPDATE_SCREENSHOTS === '1' && SHOWN.has(name)) {
      mkdirSync(mediaFolder, { recursive: true });
      copyFileSync(file, path.join(mediaFolder, `${name}.png`));
    }
  }

  async stop(): Promise<void> {
    await this.chromium.stop();
    await this.server.stop();
    if (process.env.LACUNA_TEST_KEEP === undefined) rmSync(this.root, { recursive: true, force: true });
  }
}

/** The packaged extension, which is what users get, as a folder. */
function unpacked(root: string): string {
  const folder = path.join(root, 'vsix');
  execFileSync(python(), ['-m', 'zipfile', '-e', packaged(), folder]);
  return path.join(folder, 'extension');
}

/** The newest package. */
export function packaged(): string {
  const files = readdirSync(extensionFolder).filter((name) => name.endsWith('.vsix')).map((name) => path.join(extensionFolder, name));
  const newest = files.toSorted((one, other) => statSync(other).mtimeMs - statSync(one).mtimeMs)[0];
  if (newest === undefined) throw new Error(`no package in ${extensionFolder}: run \`npm run package\` there first`);
  return newest;
}

/** A home without any model or engine. */
function emptyHome(root: string): string {
  const home = path.join(root, 'home');
  mkdirSync(home);
  return home;
}

/** A home of its own that shares the models that are here, but no engine; undefined where the default one is not. */
export function homeWithModels(root: string): string {
  const script = 'import os; from engine.paths import Paths; p = Paths.from_environment(os.environ); print(p.models, p.cache, sep="\\n")';
  const printed = execFileSync(python(), ['-c', script], { encoding: 'utf8', env: { ...process.env, PYTHONPATH: repository } });
  const [models, cache] = printed.trim().split('\n');
  const home = path.join(root, 'home-with-models');
  if (models === undefined || cache === undefined || !existsSync(models)) throw new Error('pull the default model first: lacuna models pull');
  mkdirSync(home, { recursive: true });
  mkdirSync(cache, { recursive: true });
  symlinkSync(models, path.join(home, 'models'));
  symlinkSync(cache, path.join(home, 'cache'));
  return home;
}
