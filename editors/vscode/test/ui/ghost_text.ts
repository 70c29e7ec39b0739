/** Ghost text: typed, taken whole or by words, typed through, let go; and a Tab key that stays the user's. */
import assert from 'node:assert/strict';
import type { Tell } from './story.ts';

export function ghostTextStories(tell: Tell): void {
  tell('ghost text comes while typing and Tab takes it', async (session, workbench) => {
    session.steering.reply({ when: 'def add', text: '(a, b):\n    return a + b' });
    await session.file('typed.py', 'import math\n\n');
    await workbench.documents.select({ line: 2, character: 0 });
    await workbench.type('def add');
    await workbench.ghostWith('(a, b):');
    assert.equal(await workbench.documents.text(), 'import math\n\ndef add', 'ghost text is not in the document');
    await session.picture('ghost-text');
    await workbench.press('Tab');
    await workbench.documents.textIs('import math\n\ndef add(a, b):\n    return a + b');
    await workbench.noGhost();
    await workbench.press('Control+z');
    await workbench.documents.textIs('import math\n\ndef add');
  });

  tell('one word is taken with Ctrl+Right, and Escape lets the rest go', async (session, workbench) => {
    session.steering.reply({ when: 'total = ', text: 'sum(values) / count' });
    await session.file('word.py', 'values = [1]\n');
    await workbench.documents.select({ line: 1, character: 0 });
    await workbench.type('total = ');
    await workbench.ghostWith('sum(values) / count');
    await workbench.press('Control+ArrowRight');
    await workbench.documents.textIs('values = [1]\ntotal = sum');
    await workbench.ghostWith('(values) / count');
    await workbench.press('Escape');
    await workbench.noGhost();
    await workbench.documents.textIs('values = [1]\ntotal = sum');
  });

  tell('one line is taken with Ctrl+Alt+Right, then the next', async (session, workbench) => {
    session.steering.reply({ when: 'def add', text: '(a, b):\n    total = a + b\n    return total' });
    await session.file('line.py', 'import math\n\n');
    await workbench.documents.select({ line: 2, character: 0 });
    await workbench.type('def add');
    await workbench.ghostWith('return total');
    await workbench.press('Control+Alt+ArrowRight');
    await workbench.documents.textIs('import math\n\ndef add(a, b):\n');
    await workbench.ghostWith('total = a + b');
    await workbench.press('Control+Alt+ArrowRight');
    await workbench.documents.textIs('import math\n\ndef add(a, b):\n    total = a + b\n');
    await workbench.ghostWith('return total');
    await workbench.press('Escape');
    await workbench.noGhost();
    await workbench.documents.textIs('import math\n\ndef add(a, b):\n    total = a + b\n');
  });

  tell('typing along a suggestion keeps it and shortens it', async (session, workbench) => {
    session.steering.reply({ when: 'result = ', text: 'compute(1)' });
    await session.file('along.py', '\n');
    await workbench.type('result = ');
    await workbench.ghostWith('compute(1)');
    await workbench.type('comp');
    await workbench.ghostWith('ute(1)');
    await workbench.press('Tab');
    await workbench.documents.textIs('result = compute(1)\n');
  });

  tell('Tab in leading white space indents although there is a suggestion', async (session, workbench) => {
    session.steering.reply({ text: '    return width * height' });
    await session.file('indent.py', 'def area(width, height):\n');
    await workbench.documents.select({ line: 1, character: 0 });
    await workbench.probe.evaluate((vscode) => vscode.commands.executeCommand('editor.action.inlineSuggest.trigger'), undefined);
    await workbench.ghostWith('return width * height');
    await workbench.press('Tab');
    await workbench.documents.textIs('def area(width, height):\n    ');
  });

  tell('Tab takes the menu\'s entry while a menu is open', async (session, workbench) => {
    session.steering.reply({ kind: 'fill', when: 'alph', text: 'anumeric()' });
    await session.file('menu.py', 'alphabet = 1\n');
    await workbench.documents.select({ line: 1, character: 0 });
    await workbench.type('alph');
    await workbench.ghostWith('anumeric()');
    await workbench.press('Control+Space');
    const menu = workbench.page.locator('.suggest-widget.visible .monaco-list-row');
    await menu.first().waitFor();
    const label = await menu.first().getAttribute('aria-label');
    await workbench.press('Tab');
    await workbench.page.locator('.suggest-widget.visible').waitFor({ state: 'detached' });
    await workbench.documents.textIs(`alphabet = 1\n${label?.split(',')[0]}`);
  });
}
