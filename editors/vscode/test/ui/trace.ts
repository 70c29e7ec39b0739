/** `Lacuna: Show Trace`: records what happens at the cursor and opens the page that plays it. */
import assert from 'node:assert/strict';
import type { FrameLocator } from 'playwright-core';
import { eventually, isAlive } from '../harness/wait.ts';
import type { Workbench } from '../harness/workbench.ts';
import type { Tell } from './story.ts';

const RUN = 'Lacuna: Show Trace';

/** The page of a trace that is open. */
export function tracePage(workbench: Workbench): FrameLocator {
  return workbench.page.frameLocator('iframe.webview').frameLocator('iframe#active-frame');
}

export function traceStories(tell: Tell): void {
  tell('a trace of the text as it stands opens as a page that plays', async (session, workbench) => {
    session.steering.set({ commands: { trace: { page: true } } });
    await session.file('traced.py', 'flag = "🚀"\n');
    await workbench.documents.select({ line: 0, character: 11 });
    await workbench.page.keyboard.insertText(' + ');
    await workbench.run(RUN);
    const page = tracePage(workbench);
    await page.locator('#status', { hasText: 'Step 1 of 3' }).waitFor();
    const [call = []] = session.steering.calls('trace').slice(-1);
    assert.deepEqual(call.slice(0, 6), ['trace', '-', '--language', 'python', '--at', '1:14'], 'columns count code points');
    assert.equal(session.steering.seen().at(-1)?.text, 'flag = "🚀" + \n', 'what is not saved is traced');
    await page.locator('#canvas').press('ArrowRight');
    await page.locator('#status', { hasText: 'Step 2 of 3' }).waitFor();
    await session.picture('trace');
    assert.equal(await workbench.documents.textOf('traced.py'), 'flag = "🚀" + \n', 'the file stays as it is');
    await workbench.toastsAre(0);
  });

  tell('a trace that fails says why once, and one that is cancelled says nothing', async (session, workbench) => {
    session.steering.set({ commands: { trace: { err: 'Error: no model is here. Pull it.\n', code: 1 } } });
    await session.file('untraced.py', 'x = \n');
    await workbench.run(RUN);
    await workbench.toast('Pull it').waitFor();
    await workbench.toastsAre(1);
    assert.equal(session.steering.calls('trace').at(-1)?.[1]?.endsWith('untraced.py'), true, 'a saved file is named');
    await workbench.tidy();

    session.steering.set({ commands: { trace: { out: 'loading\n', line_s: 600, page: true } } });
    await session.file('cancelled.py', 'x = \n');
    const calls = session.steering.calls('trace').length;
    await workbench.run(RUN);
    await eventually('the recording to begin', () => session.steering.calls('trace').length > calls);
    await workbench.toast('recording a trace').getByRole('button', { name: 'Cancel' }).click();
    await workbench.toasts.first().waitFor({ state: 'detached' });
    const pid = session.steering.seen().findLast((seen) => seen.arguments?.[0] === 'trace')?.pid ?? 0;
    await eventually('the recording to end', () => !isAlive(pid));
    assert.equal(await workbench.page.locator('iframe.webview').count(), 0);
  });
}
