/** Where the server may be, in the order in which it is looked for. Pure: what exists is asked of the caller. */

import { posix, win32 } from 'node:path';

/** Whose machine it is. */
export interface Home {
  readonly platform: NodeJS.Platform;
  readonly home: string;
  /** `LOCALAPPDATA` of Windows, which need not lie in the home; empty where there is none. */
  readonly localAppData: string;
}

export interface Places extends Home {
  readonly isTrusted: boolean;
  /** Setting `server.command`: a whole command line. */
  readonly command: readonly string[];
  /** Setting `server.interpreter`. */
  readonly interpreter: string;
  /** The interpreter chosen in the Python extension, if there is one. */
  readonly selectedInterpreter: string;
  readonly folders: readonly string[];
  readonly path: string;
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
    return [...beside(file, 'interpreter', places), ofInterpreter(file)];
  }
  const found: Candidate[] = [];
  // A folder that nobody vouched for must not say what is run.
  if (places.isTrusted && places.selectedInterpreter) {
    found.push(...beside(places.selectedInterpreter, 'selected', places));
  }
  for (const folder of places.isTrusted ? places.folders : []) {
    found.push(...VENVS.map((venv) => executable(paths.join(folder, venv), 'venv', places)));
  }
  found.push(
    ...foldersOf(places).map((folder) => lacuna(paths.join(folder, nameOn(places.platform)), 'path')),
    executable(ownVenv(places), 'own', places),
  );
  return found;
}

/** Where `Lacuna: Install` makes its environment. */
export function ownVenv({ platform, home, localAppData }: Home): string {
  return platform === 'win32'
    ? win32.join(localAppData || win32.join(home, 'AppData', 'Local'), 'lacuna', 'venv')
    : posix.join(home, '.lacuna', 'venv');
}

/** The folders of the path, without those that are relative: they would be folders of the workspace. */
function foldersOf({ path, platform }: Places): string[] {
  const paths = pathsOf(platform);
  if (platform !== 'win32') {
    return path.split(paths.delimiter).filter((folder) => paths.isAbsolute(folder));
  }
  // Windows lets a folder stand in quotation marks; one without a drive is of whatever drive one happens to be on.
  const parts = path.match(/(?:"[^"]*"|[^;"])+/g) ?? [];
  const folders = parts.map((part) => part.replaceAll('"', '').trim());
  return folders.filter((folder) => paths.isAbsolute(folder) && paths.parse(folder).root.length > 1);
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

/** Programs are where their interpreter is; on Windows in `Scripts` below it, unless the environment is a venv. */
function beside(interpreter: string, source: Source, { platform }: Places): Candidate[] {
  const paths = pathsOf(platform);
  const folder = paths.dirname(interpreter);
  const folders = platform === 'win32' ? [folder, paths.join(folder, 'Scripts')] : [folder];
  return folders.map((one) => lacuna(paths.join(one, nameOn(platform)), source));
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
