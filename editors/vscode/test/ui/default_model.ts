/** Nothing scripted: the real server, the real engine and the default model. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { python, repository } from '../harness/places.ts';
import { homeWithModels } from '../harness/session.ts';
import { eventually } from '../harness/wait.ts';
import { nothingLeft, review, rewrite } from './rewrite.ts';
import type { Tell } from './story.ts';
import { tracePage } from './trace.ts';

const LOAD_MS = 240_000;
const AREA = 'def area(width, height):\n    """Return the area of a rectangle."""\n    return width * height\n';

export function modelStories(tell: Tell): void {
  tell('the default model: ghost text, a rewrite, two holes and a trace', async (session, workbench) => {
    const home = homeWithModels(session.root);
    await session.restart({ engine: 'model', environment: { LACUNA_HOME: home } });
    // What the model writes is looked at, not how fast it does on this machine: no text is cut off by its deadline.
    await workbench.documents.setting('lacuna.inlineCompletion.deadlineMs', 0);
    try {
      await session.file('shapes.py', `${AREA}\n\ndef perimeter(width, height):\n`);
      await workbench.lacunaSays(/is ready/, LOAD_MS);
      await workbench.documents.select({ line: 6, character: 0 });
      await workbench.type('    return 2 * (');
      const ghost = await eventually('ghost text', async () => (await workbench.ghost()) || undefined);
      await session.picture('model-ghost-text');
      const typed = await workbench.documents.text();
      await workbench.press('Tab');
      await eventually('the text to be taken', async () => (await workbench.documents.text()) !== typed);
      const line = (await workbench.documents.text()).split('\n')[6] ?? '';
      assert.match(line, /^ {4}return 2 \* \(.*width.*height/, `not of this model: ${ghost}`);

      await rewrite(workbench, AREA.trimEnd(), 'Rename width to w.');
      await review(workbench);
      await session.picture('model-rewrite');
      await workbench.lens('Accept all').click();
      await eventually('the rewrite', async () => (await workbench.documents.text()).includes('def area(w, height):'));
      await nothingLeft(workbench);

      await session.file('holes-of-model.py', `${AREA.replace('width * height', '<fill>')}\n\ndef square(side):\n    return <fill>\n`);
      await workbench.run('Lacuna: Fill Holes');
      await eventually('both holes', async () => !(await workbench.documents.text()).includes('<fill>'), LOAD_MS);
      assert.ok((await workbench.documents.text()).includes('return width * height'));

      await session.file('traced-by-model.py', `${AREA}\n\ndef square(side):\n    return \n`);
      await workbench.documents.select({ line: 6, character: 11 });
      await workbench.run('Lacuna: Show Trace');
      await tracePage(workbench).locator('#status', { hasText: /Step 1 of \d+/ }).waitFor({ timeout: LOAD_MS });
      await session.picture('model-trace');
    } finally {
      await workbench.documents.setting('lacuna.inlineCompletion.deadlineMs', undefined);
      const environment = { ...process.env, LACUNA_HOME: home, PYTHONPATH: repository };
      execFileSync(python(), ['-m', 'engine.cli.main', 'engine', 'stop'], { env: environment, stdio: 'ignore' });
    }
  }, 2 * LOAD_MS);
}
