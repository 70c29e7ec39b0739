/** Ghost text where positions and line ends are easily got wrong, and where there is no file. */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { eventually } from '../harness/wait.ts';
import type { Session } from '../harness/session.ts';
import type { Tell } from './story.ts';

/** Whether the engine has been asked for a fill since this was made. */
function askedMore(session: Session): () => boolean {
  const before = session.steering.requests('Fill').length;
  return () => session.steering.requests('Fill').length > before;
}

export function textStories(tell: Tell): void {
  tell('a file with CRLF keeps it in every line', async (session, workbench) => {
    session.steering.reply({ when: 'def add', text: '(a, b):\n    total = a + b\n    return total' });
    const file = await session.file('windows.py', 'import math\r\n\r\n\r\nprint(math.pi)\r\n');
    await workbench.documents.select({ line: 1, character: 0 });
    await workbench.type('def add');
    await workbench.ghostWith('total = a + b');
    await workbench.press('Tab');
    const expected = 'import math\r\ndef add(a, b):\r\n    total = a + b\r\n    return total\r\n\r\nprint(math.pi)\r\n';
    await workbench.documents.textIs(expected);
    await workbench.documents.save();
    assert.equal(readFileSync(file, 'utf8'), expected);
    assert.ok(!session.steering.requests('Fill').at(-1)?.prefix?.includes('\r'), 'the engine sees \\n only');
  });

  tell('emoji before the cursor move nothing', async (session, workbench) => {
    session.steering.reply({ when: '= "👩‍🚀🚀" + ', text: 'name + "🛰"' });
    await session.file('emoji.py', 'name = "é𝛼👩‍🚀"\n');
    await workbench.documents.select({ line: 1, character: 0 });
    await workbench.page.keyboard.insertText('flight = "👩‍🚀🚀" +');
    await workbench.type(' ');
    await workbench.ghostWith('name + "🛰"');
    await session.picture('emoji');
    await workbench.press('Tab');
    await workbench.documents.textIs('name = "é𝛼👩‍🚀"\nflight = "👩‍🚀🚀" + name + "🛰"');
  });

  tell('a cell of a notebook', async (session, workbench) => {
    session.steering.reply({ when: 'double = ', text: 'value * 2' });
    const cells = ['value = 21', ''].map((source) => ({ cell_type: 'code', source: [source], metadata: {}, outputs: [], execution_count: null }));
    const content = { cells, metadata: { language_info: { name: 'python' } }, nbformat: 4, nbformat_minor: 5 };
    writeFileSync(path.join(session.workspace, 'sheet.ipynb'), JSON.stringify(content));
    await workbench.documents.openNotebook('sheet.ipynb');
    await workbench.documents.editCell(1);
    await workbench.typeWatched('double = ', askedMore(session));
    await workbench.ghostWith('value * 2');
    await session.picture('notebook');
    assert.ok(session.steering.requests('Fill').at(-1)?.prefix?.includes('value = 21'), 'the cell above is context');
    await workbench.press('Tab');
    await eventually('the cell to be filled', async () => (await workbench.documents.cell('sheet.ipynb', 1)) === 'double = value * 2');
  });

  tell('a document without a file', async (session, workbench) => {
    session.steering.reply({ when: 'var n = ', text: 'count + 1' });
    await workbench.documents.untitled('go', 'const count = 1\n');
    await workbench.documents.select({ line: 1, character: 0 });
    await workbench.typeWatched('var n = ', askedMore(session));
    await workbench.ghostWith('count + 1');
    await workbench.press('Tab');
    await workbench.documents.textIs('const count = 1\nvar n = count + 1');
  });
}
