/** A machine on which nothing of Lacuna is yet: a home and a path of its own, and folders that nobody trusts. */
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { probeFolder, pythonPath, steeredServer } from './places.ts';
import { Session, packaged } from './session.ts';
import type { Steering } from './steering.ts';

const inShell = (words: readonly string[]): string => words.map((word) => `'${word.replaceAll("'", `'\\''`)}'`).join(' ');

export class Newcomer {
  readonly session: Session;
  readonly home: string;

  private constructor(session: Session) {
    this.session = session;
    this.home = homeIn(session.root);
  }

  /** A workbench without the extension. */
  static async start(): Promise<Newcomer> {
    return new Newcomer(await Session.open((root, steering) => ({
      extensions: { 'lacuna-probe': probeFolder },
      userSettings: { 'workbench.welcomePage.walkthroughs.openOnInstall': true, 'security.workspace.trust.startupPrompt': 'never' },
      machineSettings: {},
      environment: { ...pythonPath(), ...bareMachine(root, steering) },
      asksForTrust: true,
    })));
  }

  /** Installs the package as a person does from the window; nothing where it is there already. */
  async install(): Promise<void> {
    await this.session.workbench.probe.evaluate(async (vscode, file) => {
      if (vscode.extensions.getExtension('lacuna.lacuna') === undefined) {
        await vscode.commands.executeCommand('workbench.extensions.installExtension', vscode.Uri.file(file));
      }
    }, packaged());
  }

  /** What the Python of this machine was told so far, a line for each call. */
  pythonCalls(): readonly string[] {
    const log = path.join(this.home, 'python.log');
    return existsSync(log) ? readFileSync(log, 'utf8').trim().split('\n') : [];
  }

  /** A program that stands for `lacuna`, steered by the session or by a folder. */
  program(file: string, steering: string = this.session.steering.folder): void {
    executable(file, `exec ${inShell(steeredServer(steering).slice(0, -1))} "$@"`);
  }
}

function homeIn(root: string): string {
  return path.join(root, 'me');
}

/** Its environment. The login shell, which VS Code asks for its own, says the same. */
function bareMachine(root: string, steering: Steering): Readonly<Record<string, string>> {
  const home = homeIn(root);
  const bin = path.join(home, 'bin');
  const PATH = [bin, '/usr/bin', '/bin'].join(path.delimiter);
  mkdirSync(home);
  executable(path.join(bin, 'python3'), pythonScript(steering));
  for (const name of ['.profile', '.bashrc']) writeFileSync(path.join(home, name), `PATH='${PATH}'\n`);
  return { HOME: home, PATH, SHELL: '/bin/bash', LACUNA_HOME: path.join(home, 'lacuna-home') };
}

/** Notes what it is told, makes an environment that holds itself, and "installs" the steered program beside it. */
function pythonScript(steering: Steering): string {
  const program = `#!/bin/sh\\nexec ${inShell(steeredServer(steering.folder).slice(0, -1)).replaceAll("'", `'\\''`)} "$@"\\n`;
  return [
    'echo "$*" >> "$HOME/python.log"',
    'case "$1 $2" in',
    '  "-m venv") mkdir -p "$3/bin" && cp "$0" "$3/bin/python" ;;',
    `  "-m pip") printf '${program}' > "$(dirname "$0")/lacuna" && chmod +x "$(dirname "$0")/lacuna" ;;`,
    'esac',
  ].join('\n');
}

function executable(file: string, script: string): void {
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, `#!/bin/sh\n${script}\n`);
  chmodSync(file, 0o755);
}
