/** What surrounds the texts: status, snooze, languages, models, the doctor, alternatives. */
import assert from 'node:assert/strict';
import { eventually, pause } from '../harness/wait.ts';
import type { Tell } from './story.ts';

const MODELS = [
  { name: 'qwen2.5-coder-0.5b', status: 'here', size: 531_000_000, default: true, licence: 'Apache-2.0', description: 'the default' },
  { name: 'scripted-big', status: 'not here', size: 2_000_000_000, default: false, licence: 'MIT', description: 'another one' },
];

export function everydayStories(tell: Tell): void {
  tell('asked for, several texts are offered, and the next one is a key away', async (session, workbench) => {
    session.steering.reply({ when: 'value = ', text: 'first()', alternatives: ['second()', 'third()'] });
    await session.file('several.py', 'value = ');
    await workbench.documents.select({ line: 0, character: 8 });
    await workbench.run('Trigger Inline Suggestion');
    await workbench.ghostWith('first()');
    await workbench.press('Alt+]');
    await workbench.ghostWith('second()');
    await workbench.press('Alt+[');
    await workbench.ghostWith('first()');
  });

  tell('snoozed, nothing comes by itself until it is woken', async (session, workbench) => {
    session.steering.reply({ when: 'x = ', text: 'ghost()' });
    await session.file('snooze.py', '');
    await workbench.run('Lacuna: Snooze');
    await workbench.choose('5 minutes');
    await workbench.lacunaSays(/snoozed for 5 min/);
    await session.picture('snoozed');
    const asked = session.steering.requests('Fill').length;
    await workbench.type('x = ');
    await pause(1000);
    assert.equal(await workbench.ghost(), '');
    assert.equal(session.steering.requests('Fill').length, asked);
    await workbench.run('Lacuna: Snooze');
    await workbench.lacunaSays(/is ready|sleeps/);
    await workbench.type('1\nx = ');
    await workbench.ghostWith('ghost()');
  });

  tell('a language is switched off and on again', async (session, workbench) => {
    session.steering.reply({ when: 'x = ', text: 'ghost()' });
    await session.file('off.rb', '');
    await workbench.run('Lacuna: Turn Ghost Text On or Off');
    await workbench.lacunaSays(/No ghost text in ruby/);
    await workbench.type('x = ');
    await pause(1000);
    assert.equal(await workbench.ghost(), '');
    await workbench.run('Lacuna: Turn Ghost Text On or Off');
    await workbench.lacunaSays(/is ready|sleeps/);
    await workbench.type('1\nx = ');
    await workbench.ghostWith('ghost()');
  });

  tell('a model is fetched after a yes only, with progress', async (session, workbench) => {
    const lines = [25, 50, 100].map((part) => JSON.stringify({ event: 'progress', done: part * 2e7, total: 2e9 }));
    session.steering.set({
      commands: {
        'models list --json': { out: JSON.stringify({ models: MODELS }) },
        'models pull scripted-big --json': { out: `${lines.join('\n')}\n{"event":"error","message":"The disk is full.","remedy":"Make room."}\n`, code: 1, line_s: 1 },
      },
    });
    await session.file('model.py', '');
    await workbench.run('Lacuna: Choose a Model');
    await workbench.row('scripted-big').waitFor();
    await session.picture('models');
    await workbench.choose('scripted-big');
    const pulls = (): number => session.steering.seen().filter((seen) => seen.arguments?.includes('pull')).length;
    await workbench.toast('scripted-big').waitFor();
    assert.equal(pulls(), 0, 'nothing is fetched without a yes');
    await workbench.toasts.getByRole('button', { name: 'Download' }).click();
    await workbench.toast('downloading').waitFor();
    await eventually('progress', async () => (await workbench.toasts.allInnerTexts()).join(' ').includes('2.0 GB'));
    await session.picture('model-download');
    await workbench.toast('Make room').waitFor();
    assert.equal(pulls(), 1);
    await workbench.toastsAre(1);
  });

  tell('the doctor shows its findings as a page', async (session, workbench) => {
    await session.file('doctor.py', '');
    await workbench.run('Lacuna: Doctor');
    const page = workbench.page.frameLocator('iframe.webview').frameLocator('iframe#active-frame');
    await page.getByRole('heading', { name: 'Doctor' }).waitFor({ timeout: 90_000 });
    await page.getByText('torch').first().waitFor();
    await session.picture('doctor');
  });

  tell('the menu behind the status', async (session, workbench) => {
    await session.file('menu-behind.py', '');
    await workbench.statusItem.click();
    await workbench.row('Snooze').waitFor();
    await session.picture('menu');
  });
}
