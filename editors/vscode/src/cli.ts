/** Runs `lacuna` beside the server, for what is no business of a language server: models, doctor, traces. */

import { spawn } from 'node:child_process';
import * as vscode from 'vscode';
import { LineReader } from './core/lineReader';

export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Calling {
  readonly input?: string;
  /** Hears every line of the standard output. */
  readonly hear?: (line: string) => void;
  /** Ends the process. */
  readonly cancel?: vscode.CancellationToken;
}

/** Runs to the end; raises an Error when the program cannot be started. */
export function call(cli: readonly string[], args: readonly string[], calling: Calling = {}): Promise<Ended> {
  const [file = '', ...first] = cli;
  const environment = vscode.workspace.getConfiguration('lacuna.server').get<Record<string, string>>('environment', {});
  return new Promise((resolve, reject) => {
    const child = spawn(file, [...first, ...args], { env: { ...process.env, ...environment }, windowsHide: true });
    const reader = new LineReader(calling.hear ?? (() => undefined));
    let [stdout, stderr] = ['', ''];
    child.stdout.setEncoding('utf8').on('data', (piece: string) => {
      stdout += piece;
      reader.push(piece);
    });
    child.stderr.setEncoding('utf8').on('data', (piece: string) => {
      stderr += piece;
    });
    // Who ends before reading all of it has said why elsewhere.
    child.stdin.on('error', () => undefined);
    child.stdin.end(calling.input ?? '');
    const cancelling = calling.cancel?.onCancellationRequested(() => child.kill());
    child.on('error', (fault) => {
      cancelling?.dispose();
      reject(fault);
    });
    child.on('close', (code) => {
      cancelling?.dispose();
      reader.end();
      resolve({ code, stdout, stderr });
    });
  });
}
