/** Holes filled together, and a selection made anew from what stands around it. */
import assert from 'node:assert/strict';
import type { Tell } from './story.ts';

const HOLES = 'def area(w, h):\n    return <fill>\n\n\ndef around(w, h):\n    return <fill>\n';
const FILLED = 'def area(w, h):\n    return w * h\n\n\ndef around(w, h):\n    return 2 * (w + h)\n';

export function holeStories(tell: Tell): void {
  tell('two holes are filled by one command, and one undo empties them', async (session, workbench) => {
    session.steering.reply({ kind: 'fill', text: 'w * h', further: ['2 * (w + h)'] });
    await session.file('holes.py', HOLES);
    await session.picture('holes');
    const asked = session.steering.requests('Fill').length;
    await workbench.run('Lacuna: Fill Holes');
    await workbench.documents.textIs(FILLED);
    await session.picture('holes-filled');
    assert.equal(session.steering.requests('Fill').length, asked + 1, 'both are one job');
    await workbench.focus();
    await workbench.press('Control+z');
    await workbench.documents.textIs(HOLES);
  });

  tell('the light bulb offers the holes', async (session, workbench) => {
    session.steering.reply({ kind: 'fill', text: 'w * h', further: ['2 * (w + h)'] });
    await session.file('bulb.py', HOLES);
    await workbench.press('Control+a');
    // While the actions for the bulb are still being asked for, the key is lost.
    await workbench.activeEditor.locator('.lightBulbWidget').waitFor();
    await workbench.press('Control+.');
    const menu = workbench.page.locator('.action-widget');
    await menu.getByText('Fill 2 holes').waitFor();
    await session.picture('code-actions');
    await menu.getByText('Fill 2 holes').click();
    // VS Code's default of `rewrite.confirm` is off: one undo takes it back.
    await workbench.documents.textIs(FILLED);
  });

  tell('a selection is filled from its surroundings', async (session, workbench) => {
    session.steering.reply({ kind: 'fill', text: 'w * h' });
    await session.file('selection.py', 'def area(w, h):\n    return 0\n');
    await workbench.documents.selectText('0');
    await workbench.run('Lacuna: Fill Selection');
    await workbench.documents.textIs('def area(w, h):\n    return w * h\n');
    await workbench.toastsAre(0);
  });

  tell('where there are no holes it says what one looks like', async (session, workbench) => {
    await session.file('none.py', 'x = 1\n');
    await workbench.run('Lacuna: Fill Holes');
    await workbench.toast('<fill>').waitFor();
    await workbench.documents.textIs('x = 1\n');
  });
}
