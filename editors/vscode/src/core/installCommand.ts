/** The command that installs Lacuna into an environment of its own. Pure. */

import { binFolder, ownVenv, pathsOf } from './serverSearch';

/**
 * source: what pip is given: the folder of a checkout or a wheel. There is no name to give it: on the public index
 * `lacuna` is another project.
 */
export function installCommand(platform: NodeJS.Platform, home: string, source: string): string {
  const venv = ownVenv(platform, home);
  const python = pathsOf(platform).join(binFolder(venv, platform), platform === 'win32' ? 'python.exe' : 'python');
  const pip = ['-m', 'pip', 'install'].join(' ');
  return platform === 'win32'
    ? `py -m venv ${inPowerShell(venv)}; if ($?) { & ${inPowerShell(python)} ${pip} ${inPowerShell(source)} }`
    : `python3 -m venv ${inShell(venv)} && ${inShell(python)} ${pip} ${inShell(source)}`;
}

function inShell(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

function inPowerShell(word: string): string {
  return `'${word.replaceAll("'", "''")}'`;
}
