/** Looks for the server where `core/serverSearch` says, on the machine where the files are. */

import { access, constants } from 'node:fs/promises';
import { homedir } from 'node:os';
import * as vscode from 'vscode';
import { type Candidate, type Home, type Places, candidates } from './core/serverSearch';

/** The part of the Python extension's interface that is used here. */
interface PythonExtension {
  readonly environments?: { getActiveEnvironmentPath?: (resource?: vscode.Uri) => { path?: string } | undefined };
}

export async function findServer(): Promise<Candidate | undefined> {
  for (const candidate of candidates(places())) {
    if (candidate.file === undefined || (await isExecutable(candidate.file))) {
      return candidate;
    }
  }
  return undefined;
}

function places(): Places {
  const settings = vscode.workspace.getConfiguration('lacuna.server');
  return {
    ...here(),
    isTrusted: vscode.workspace.isTrusted,
    command: settings.get<string[]>('command', []),
    interpreter: settings.get<string>('interpreter', ''),
    selectedInterpreter: selectedInterpreter(),
    folders: (vscode.workspace.workspaceFolders ?? [])
      .filter((folder) => folder.uri.scheme === 'file')
      .map((folder) => folder.uri.fsPath),
    path: process.env['PATH'] ?? '',
  };
}

/** Whether a command of the person's own starts the server: where the program is, it may leave unsaid. */
export function hasOwnCommand(): boolean {
  return vscode.workspace.getConfiguration('lacuna.server').get<string[]>('command', []).length > 0;
}

/** The machine where the server runs. */
export function here(): Home {
  return { platform: process.platform, home: homedir(), localAppData: process.env['LOCALAPPDATA'] ?? '' };
}

/** What the Python extension has chosen; it is not woken for that. */
function selectedInterpreter(): string {
  const python = vscode.extensions.getExtension<PythonExtension>('ms-python.python');
  const folder = vscode.workspace.workspaceFolders?.[0]?.uri;
  return python?.isActive ? (python.exports.environments?.getActiveEnvironmentPath?.(folder)?.path ?? '') : '';
}

async function isExecutable(file: string): Promise<boolean> {
  try {
    await access(file, process.platform === 'win32' ? constants.F_OK : constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
