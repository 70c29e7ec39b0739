/** With an engine process of its own behind the server: killed in the middle, and shared by two windows. */
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { Session } from '../harness/session.ts';
import { eventually, pause } from '../harness/wait.ts';
import { Workbench } from '../harness/workbench.ts';
import { nothingLeft, rewrite } from './rewrite.ts';
import type { Tell } from './story.ts';

interface Status {
  readonly facts?: { readonly pid: number } | null;
}

export function engineStories(tell: Tell): void {
  tell('the engine is killed in the middle of a rewrite', async (session, workbench) => {
    await withEngine(session);
    await session.file('killed.py', 'a = 1\nb = 2\n');
    const pid = await enginePid(workbench);
    await rewrite(workbench, 'b = 2', 'steps=0 delay=0.05 text=b=3');
    await eventually('drafts', async () => (await workbench.decorations()).length > 0);
    process.kill(pid, 'SIGKILL');
    await workbench.toasts.first().waitFor();
    await session.picture('engine-killed');
    assert.equal(await workbench.toasts.count(), 1);
    await nothingLeft(workbench);
    assert.equal(await workbench.documents.text(), 'a = 1\nb = 2\n');
    // The next one starts a new engine.
    await workbench.tidy();
    await session.file('after.py', '# steps=1 text=hello\n');
    await workbench.documents.select({ line: 1, character: 0 });
    await workbench.type('x = ');
    await eventually('ghost text of the next engine', async () => {
      if ((await workbench.ghost()) === 'hello') return true;
      await workbench.probe.evaluate((vscode) => vscode.commands.executeCommand('editor.action.inlineSuggest.trigger'), undefined);
      return pause(1000).then(() => false);
    });
    assert.notEqual(await enginePid(workbench), pid);
  });

  tell('two windows share one engine', async (session, workbench) => {
    await withEngine(session);
    await session.file('one.py', '# steps=1 text=hello\n');
    const folder = path.join(session.root, 'other');
    mkdirSync(folder, { recursive: true });
    writeFileSync(path.join(folder, 'two.py'), '# steps=1 text=world\n');
    const page = await session.chromium.window();
    try {
      const other = await Workbench.open(page, session.server, folder);
      await other.documents.open('two.py');
      await other.lacunaSays(/is ready|sleeps/, 60_000);
      await other.hasSettings();
      for (const [window, word] of [[workbench, 'hello'], [other, 'world']] as const) {
        await window.documents.select({ line: 1, character: 0 });
        await window.type('x');
        await window.ghostWith(word);
      }
      await session.picture('two-windows', other);
      assert.equal(await enginePid(other), await enginePid(workbench));
      assert.notEqual(session.steering.servers().at(-1)?.pid, session.steering.servers().at(-2)?.pid, 'each window has a server');
    } finally {
      await page.context().close();
    }
  });

  tell('the server killed comes back by itself', async (session, workbench) => {
    await session.restart({ replies: [{ when: 'x = ', text: 'ghost()' }] });
    await session.file('server.py', '');
    const servers = session.steering.servers();
    process.kill(servers.at(-1)?.pid ?? 0, 'SIGKILL');
    await eventually('another server', () => session.steering.servers().length > servers.length);
    await workbench.lacunaSays(/is ready|sleeps/);
    await workbench.hasSettings();
    await workbench.focus();
    await workbench.type('x = ');
    await workbench.ghostWith('ghost()');
    assert.equal(await workbench.toasts.count(), 0, 'a single death is nobody\'s business');
  });
}

async function withEngine(session: Session): Promise<void> {
  await session.restart({ engine: 'process' });
}

/** Asks the server which engine it talks to; starts none. */
async function enginePid(workbench: Workbench): Promise<number> {
  return eventually('an engine', async () => {
    const status = await workbench.probe.evaluate((vscode) => vscode.commands.executeCommand<Status>('lacuna.status'), undefined);
    return status.facts?.pid;
  });
}
