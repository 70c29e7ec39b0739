/** The command that installs Lacuna into an environment of its own. Pure. */

import { type Home, binFolder, ownVenv, pathsOf } from './serverSearch';

/**
 * source: what pip is given: the folder of a checkout or a wheel. There is no name to give it: on the public index
 * `lacuna` is another project.
 */
export function installCommand(home: Home, source: string): string {
  const { platform } = home;
  const venv = ownVenv(home);
  const python = pathsOf(platform).join(binFolder(venv, platform), platform === 'win32' ? 'python.exe' : 'python');
  const pip = ['-m', 'pip', 'install'].join(' ');
  return platform === 'win32'
    ? `py -m venv ${inPowerShell(venv)}; if ($?) { & ${inPowerShell(python)} ${pip} ${inPowerShell(source)} }`
    : `python3 -m venv ${inShell(venv)} && ${inShell(python)} ${pip} ${inShell(source)}`;
}

/** The shell that understands the command; undefined for the one that the person uses. On Windows that may be any. */
export function installShell(platform: NodeJS.Platform): string | undefined {
  return platform === 'win32' ? 'powershell.exe' : undefined;
}

function inShell(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

function inPowerShell(word: string): string {
  // Typographic quotation marks end a text there as plain ones do; each is written twice.
  return `'${word.replaceAll(/['\u2018-\u201b]/g, '$&$&')}'`;
}
