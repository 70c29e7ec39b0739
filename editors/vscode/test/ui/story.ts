/** A test in the session that all stories share: it starts tidy, and shows the window when it fails. */
import { test } from 'node:test';
import type { Session } from '../harness/session.ts';
import type { Workbench } from '../harness/workbench.ts';

export type Tell = (name: string, act: (session: Session, workbench: Workbench) => Promise<void>, limit?: number) => void;

const LIMIT_MS = 120_000;

export function teller(session: () => Session, patience: number = LIMIT_MS): Tell {
  return (name, act, limit = patience) => {
    test(name, { timeout: limit }, async (context) => {
      const current = session();
      await current.workbench.tidy();
      await current.scripted();
      try {
        await act(current, current.workbench);
      } catch (error) {
        const picture = `failed ${name}`.replaceAll(/\W+/g, '-');
        await current.picture(picture).catch((fault: unknown) => context.diagnostic(`no picture: ${String(fault)}`));
        context.diagnostic(`picture: ${picture}.png; asked of the engine: ${JSON.stringify(current.steering.seen().slice(-3))}`);
        throw error;
      }
    });
  };
}
