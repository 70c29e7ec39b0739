/** Waiting for a state, never for a time: the machine may be slow. */

export const PATIENCE_MS = Number(process.env.LACUNA_TEST_PATIENCE_MS ?? 30_000);

export const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** What `look` returns, once that is neither undefined nor false; an error that says what was waited for otherwise. */
export async function eventually<T>(
  what: string,
  look: () => Promise<T | undefined | false> | T | undefined | false,
  patience: number = PATIENCE_MS,
): Promise<T> {
  const end = Date.now() + patience;
  let last: unknown;
  for (;;) {
    try {
      const value = await look();
      if (value !== undefined && value !== false) return value;
      last = value;
    } catch (error) {
      last = error;
    }
    if (Date.now() > end) throw new Error(`waited ${patience / 1000} s for ${what}; last: ${String(last)}`);
    await pause(50);
  }
}

/** Whether a process of that number runs. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
