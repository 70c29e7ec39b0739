/** Every story in one session of the workbench. */
import { after, before, describe } from 'node:test';
import { Session } from '../harness/session.ts';
import { ghostTextStories } from './ghost_text.ts';
import { modelStories } from './default_model.ts';
import { engineStories } from './engine_life.ts';
import { everydayStories } from './everyday.ts';
import { holeStories } from './holes.ts';
import { textStories } from './kinds_of_text.ts';
import { rewriteStories } from './rewrite.ts';
import { teller } from './story.ts';

describe('in the workbench', () => {
  let session: Session | undefined;
  const tell = teller(() => {
    if (session === undefined) throw new Error('the workbench did not start');
    return session;
  });
  before(async () => {
    session = await Session.start();
  }, { timeout: 180_000 });
  after(() => session?.stop());
  ghostTextStories(tell);
  textStories(tell);
  rewriteStories(tell);
  holeStories(tell);
  everydayStories(tell);
  engineStories(tell);
  modelStories(tell);
});
