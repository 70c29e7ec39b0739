/** Asks the extension host of one window, through the extension in `probe/`. */
import { request } from 'node:http';
import path from 'node:path';
import type * as vscode from 'vscode';

type Api = typeof vscode;

export class Probe {
  readonly socket: string;

  constructor(folder: string, workspace: string) {
    this.socket = path.join(folder, `${path.basename(workspace)}.sock`);
  }

  /** Runs `look` in the extension host; it sees nothing of its surroundings here but `argument`. */
  async evaluate<A, T>(look: (api: Api, argument: A) => T | Thenable<T>, argument: A): Promise<T> {
    const body = JSON.stringify({ source: look.toString(), argument: argument ?? null });
    const reply = JSON.parse(await this.post(body)) as { value?: T; error?: string };
    if (reply.error !== undefined) throw new Error(`in the extension host: ${reply.error}`);
    return reply.value as T;
  }

  private post(body: string): Promise<string> {
    return new Promise((resolve, reject) => {
      const call = request({ socketPath: this.socket, method: 'POST', path: '/' }, (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('end', () => resolve(Buffer.concat(chunks).toString('utf8')));
        response.on('error', reject);
      });
      call.setTimeout(60_000, () => call.destroy(new Error('the extension host does not answer')));
      call.on('error', reject);
      call.end(body);
    });
  }
}
