/** Inline rewrite: the selection turns into text before one's eyes, then its changes are decided one by one. */
import assert from 'node:assert/strict';
import { eventually } from '../harness/wait.ts';
import type { Workbench } from '../harness/workbench.ts';
import type { Tell } from './story.ts';

const AREA = 'def area(width, height):\n    # the area\n    result = width * height\n\n    return result';
const BEFORE = `import math\n\n\n${AREA}\n\n\nprint(area(2, 3))\n`;
const SHORT = 'def area(w, h):\n    # the area\n    result = w * h\n\n    return result  # done';

/** Selects `text`, asks for a rewrite with the key, and types what is to change. */
export async function rewrite(workbench: Workbench, text: string, instruction: string): Promise<void> {
  await workbench.documents.selectText(text);
  await workbench.press('Control+Alt+r');
  await workbench.answer(instruction);
}

export async function review(workbench: Workbench): Promise<void> {
  await workbench.lens('Accept all').waitFor();
}

/** Nothing of a rewrite is left on the screen: no lens, no draft, no dimmed or hidden text, no spinner. */
export async function nothingLeft(workbench: Workbench): Promise<void> {
  await workbench.lens(/Cancel|Accept|Discard/).first().waitFor({ state: 'detached' });
  await eventually('no decoration', async () => {
    const left = await workbench.decorations();
    if (left.length > 0) throw new Error(JSON.stringify(left));
    return true;
  });
  await eventually('no dimmed text', async () => (await workbench.dimmed()).length === 0);
  await workbench.statusItem.locator('.codicon-loading').waitFor({ state: 'detached' });
}

const draftsOf = (text: string): (readonly [string, number])[] => [
  [text.replaceAll(/\w/g, '▒'), 0],
  [`${text.slice(0, 20)}${text.slice(20).replaceAll(/\w/g, '▒')}`, 20],
  [text, 30],
];

export function rewriteStories(tell: Tell): void {
  tell('a rewrite shows its drafts, and one of its changes is rejected', async (session, workbench) => {
    session.steering.reply({ kind: 'rewrite', when: 'Short names', text: SHORT, drafts: draftsOf(SHORT), draft_s: 1 });
    await session.file('rewrite.py', BEFORE);
    await rewrite(workbench, AREA, 'Short names');
    await eventually('a draft with settled and undecided text', async () => {
      const rows = await workbench.decorations();
      if (!rows.some((row) => row.text.startsWith('def area(w, h):'))) throw new Error(JSON.stringify(rows));
      assert.ok(new Set(rows.map((row) => row.color)).size >= 2, 'what is settled looks different');
      return true;
    });
    assert.equal(await workbench.stripes(), 0, 'nothing of a selection shines through a draft');
    await session.picture('rewrite-running');
    assert.equal(await workbench.documents.text(), BEFORE, 'a draft is not in the document');
    await review(workbench);
    await session.picture('rewrite-review');
    assert.equal(await workbench.documents.text(), BEFORE, 'nothing is applied before it is accepted');
    await decide(workbench);
    const kept = BEFORE.replace(AREA, SHORT.replace('  # done', ''));
    await workbench.documents.textIs(kept);
    await nothingLeft(workbench);
    await workbench.focus();
    await workbench.press('Control+z');
    await workbench.documents.textIs(BEFORE);
  });

  tell('the changes of a rewrite as a diff, decided there', async (session, workbench) => {
    const longer = SHORT.replace('    return', '    if result < 0:\n        raise ValueError(result)\n    return');
    session.steering.reply({ kind: 'rewrite', text: longer });
    await workbench.documents.setting('lacuna.review.openDiff', 'auto');
    try {
      await session.file('diff.py', BEFORE);
      await rewrite(workbench, AREA, 'Short names');
      const diff = workbench.page.locator('.monaco-diff-editor');
      await diff.locator('.view-line', { hasText: 'raise ValueError' }).waitFor();
      await session.picture('rewrite-diff');
      await workbench.titleButton('Accept Rewrite').click();
      await diff.waitFor({ state: 'detached' });
      await workbench.documents.textIs(BEFORE.replace(AREA, longer));
      await workbench.focus();
      await workbench.press('Control+z');
      await workbench.documents.textIs(BEFORE);
    } finally {
      await workbench.documents.setting('lacuna.review.openDiff', 'never');
    }
  });

  tell('a rewrite is cancelled with Escape and leaves no trace', async (session, workbench) => {
    session.steering.reply({ kind: 'rewrite', text: SHORT, drafts: draftsOf(SHORT), draft_s: 0.2, hold: true });
    await session.file('cancel.py', BEFORE);
    await rewrite(workbench, AREA, 'Short names');
    await eventually('drafts', async () => (await workbench.decorations()).length > 0);
    await workbench.press('Escape');
    await nothingLeft(workbench);
    await eventually('the engine to hear of it', () => session.steering.seen().at(-1)?.event === 'cancelled');
    assert.equal(await workbench.documents.text(), BEFORE);
    assert.equal(await workbench.toasts.count(), 0, 'who cancels need not be told');
    assert.equal(await workbench.documents.selected(), AREA, 'what was selected is selected again');
  });

  tell('lines above move a rewrite, and typing elsewhere goes on', async (session, workbench) => {
    session.steering.reply({ kind: 'rewrite', text: SHORT, drafts: draftsOf(SHORT), draft_s: 0.5 });
    await session.file('moved.py', BEFORE);
    await rewrite(workbench, AREA, 'Short names');
    await eventually('drafts', async () => (await workbench.decorations()).length > 0);
    await workbench.documents.select({ line: 0, character: 0 });
    await workbench.type('import os\nimport re\n');
    await review(workbench);
    const moved = `import os\nimport re\n${BEFORE}`;
    await workbench.documents.textIs(moved);
    await workbench.lens('Accept all').click();
    await workbench.documents.textIs(moved.replace(AREA, SHORT));
    await nothingLeft(workbench);
  });

  tell('another text, and a further wish', async (session, workbench) => {
    const wishes = (): unknown => session.steering.requests('Rewrite').at(-1)?.instruction;
    session.steering.reply({ kind: 'rewrite', text: SHORT });
    await session.file('again.py', BEFORE);
    await rewrite(workbench, AREA, 'Short names');
    await review(workbench);
    const asked = session.steering.requests('Rewrite').length;
    session.steering.reply({ kind: 'rewrite', text: SHORT.replaceAll('h', 'g') });
    await workbench.lens('Retry').click();
    await eventually('another request', () => session.steering.requests('Rewrite').length > asked);
    await review(workbench);
    session.steering.reply({ kind: 'rewrite', when: 'No comment', text: SHORT.replace('    # the area\n', '') });
    await workbench.lens('Refine').click();
    await workbench.answer('No comment');
    await eventually('both wishes', () => String(wishes()).includes('Short names') && String(wishes()).includes('No comment'));
    await review(workbench);
    await workbench.lens('Accept all').click();
    await workbench.documents.textIs(BEFORE.replace(AREA, SHORT.replace('    # the area\n', '')));
  });

  tell('two rewrites at once, in CRLF and behind emoji', async (session, workbench) => {
    const text = 'a = "🚀"; b = 1\r\n\r\nc = "👩‍🚀"; d = 2\r\n';
    session.steering.reply(
      { kind: 'rewrite', when: 'first', text: 'b = 10', drafts: [['b = ▒', 4]], draft_s: 1.5 },
      { kind: 'rewrite', when: 'second', text: 'd = 20\nd += 1', drafts: [['d = ▒', 4]], draft_s: 0.5 },
    );
    await session.file('both.py', text);
    await rewrite(workbench, 'b = 1', 'first');
    await rewrite(workbench, 'd = 2', 'second');
    await eventually('both to be decided', async () => (await workbench.lens('Accept all').count()) === 2);
    await session.picture('rewrite-two');
    await workbench.documents.textIs(text);
    await workbench.lens('Accept all').first().click();
    await eventually('one to be left', async () => (await workbench.lens('Accept all').count()) === 1);
    await workbench.lens('Accept all').first().click();
    await workbench.documents.textIs('a = "🚀"; b = 10\r\n\r\nc = "👩‍🚀"; d = 20\r\nd += 1\r\n');
    await nothingLeft(workbench);
  });

  tell('a rewrite that fails says why once, and what to do', async (session, workbench) => {
    session.steering.reply({ kind: 'rewrite', error: ['window_exceeded', 'the selection is too long', 'Select less.'] });
    await session.file('fails.py', BEFORE);
    await rewrite(workbench, AREA, 'Short names');
    await workbench.toast('Select less').waitFor();
    await session.picture('rewrite-failed');
    assert.equal(await workbench.toasts.count(), 1);
    assert.equal(await workbench.documents.text(), BEFORE);
    await nothingLeft(workbench);
  });
}

/** Rejects the change behind `return result`, and accepts the others. */
async function decide(workbench: Workbench): Promise<void> {
  const rejections = workbench.lens(/Reject/);
  await eventually('several changes', async () => (await rejections.count()) > 1);
  await rejections.last().click();
  await workbench.lens('Accept all').click();
}
