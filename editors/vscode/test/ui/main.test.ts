/** The stories: those of every day share one session of the workbench, those of a newcomer another one. */
import { after, before, describe } from 'node:test';
import { Newcomer } from '../harness/newcomer.ts';
import { Session } from '../harness/session.ts';
import { ghostTextStories } from './ghost_text.ts';
import { modelStories } from './default_model.ts';
import { engineStories } from './engine_life.ts';
import { everydayStories } from './everyday.ts';
import { holeStories } from './holes.ts';
import { textStories } from './kinds_of_text.ts';
import { newcomerStories } from './newcomer.ts';
import { rewriteStories } from './rewrite.ts';
import { teller } from './story.ts';
import { traceStories } from './trace.ts';

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
  traceStories(tell);
  engineStories(tell);
  modelStories(tell);
});

describe('on a machine without Lacuna', () => {
  let newcomer: Newcomer | undefined;
  const machine = (): Newcomer => {
    if (newcomer === undefined) throw new Error('the workbench did not start');
    return newcomer;
  };
  before(async () => {
    newcomer = await Newcomer.start();
  }, { timeout: 180_000 });
  after(() => newcomer?.session.stop());
  // Each of them opens a folder of its own, which costs as much as a start.
  newcomerStories(teller(() => machine().session, 240_000), machine);
});
