/** Where the server may be, in the order in which it is looked for. Pure: what exists is asked of the caller. */

import { posix, win32 } from 'node:path';

export interface Places {
  readonly platform: NodeJS.Platform;
  readonly isTrusted: boolean;
  /** Setting `server.command`: a whole command line. */
  readonly command: readonly string[];
  /** Setting `server.interpreter`. */
  readonly interpreter: string;
  /** The interpreter chosen in the Python extension, if there is one. */
  readonly selectedInterpreter: string;
  readonly folders: readonly string[];
  readonly path: string;
  readonly home: string;
}

export type Source = 'command' | 'interpreter' | 'selected' | 'venv' | 'path' | 'own';

export interface Candidate {
  readonly source: Source;
  /** What starts the server. */
  readonly server: readonly string[];
  /** What `models`, `doctor` and `trace` are said to; undefined when a command of one's own does not tell. */
  readonly cli: readonly string[] | undefined;
  /** The file that must exist for it; undefined when only trying tells. */
  readonly file: string | undefined;
}

const VENVS = ['.venv', 'venv', 'env'];

/** Every place worth a look, the first that exists wins. What was configured is the only candidate then. */
export function candidates(places: Places): Candidate[] {
  if (places.command.length) {
    return [configured(places.command)];
  }
  const paths = pathsOf(places.platform);
  if (places.interpreter) {
    const file = places.interpreter.replace(/^~(?=$|[/\\])/, places.home);
    return [beside(file, 'interpreter', places), ofInterpreter(file)];
  }
  const found: Candidate[] = [];
  // A folder that nobody vouched for must not say what is run.
  if (places.isTrusted && places.selectedInterpreter) {
    found.push(beside(places.selectedInterpreter, 'selected', places));
  }
  for (const folder of places.isTrusted ? places.folders : []) {
    found.push(...VENVS.map((venv) => executable(paths.join(folder, venv), 'venv', places)));
  }
  for (const folder of places.path.split(paths.delimiter)) {
    // A relative folder of the path would be one of the workspace.
    if (paths.isAbsolute(folder)) {
      found.push(lacuna(paths.join(folder, nameOn(places.platform)), 'path'));
    }
  }
  found.push(executable(ownVenv(places.platform, places.home), 'own', places));
  return found;
}

/** Where `Lacuna: Install` makes its environment. */
export function ownVenv(platform: NodeJS.Platform, home: string): string {
  return platform === 'win32'
    ? win32.join(home, 'AppData', 'Local', 'lacuna', 'venv')
    : posix.join(home, '.lacuna', 'venv');
}

/** The folder of executables of an environment. */
export function binFolder(venv: string, platform: NodeJS.Platform): string {
  return pathsOf(platform).join(venv, platform === 'win32' ? 'Scripts' : 'bin');
}

export function pathsOf(platform: NodeJS.Platform): typeof posix {
  return platform === 'win32' ? win32 : posix;
}

function nameOn(platform: NodeJS.Platform): string {
  return platform === 'win32' ? 'lacuna.exe' : 'lacuna';
}

function configured(command: readonly string[]): Candidate {
  const at = command.indexOf('lsp');
  // A command that does not say `lsp` starts the server some way of its own.
  const cli = at > 0 ? command.slice(0, at) : undefined;
  return { source: 'command', server: command, cli, file: undefined };
}

function beside(interpreter: string, source: Source, { platform }: Places): Candidate {
  const paths = pathsOf(platform);
  return lacuna(paths.join(paths.dirname(interpreter), nameOn(platform)), source);
}

function executable(venv: string, source: Source, { platform }: Places): Candidate {
  return lacuna(pathsOf(platform).join(binFolder(venv, platform), nameOn(platform)), source);
}

function lacuna(file: string, source: Source): Candidate {
  return { source, server: [file, 'lsp'], cli: [file], file };
}

function ofInterpreter(file: string): Candidate {
  const cli = [file, '-m', 'engine.cli.main'];
  return { source: 'interpreter', server: [file, '-m', 'lsp_server'], cli, file };
}
