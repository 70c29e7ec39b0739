/** Runs inside the extension host: bundled, and loaded by the workbench, which calls `run`. */
import { rewriteTests } from './rewrites.ts';
import { serviceTests } from './services.ts';

export interface HostTest {
  readonly name: string;
  readonly run: () => Promise<void>;
}

const LIMIT_MS = 60_000;

export async function run(): Promise<void> {
  const failed: string[] = [];
  for (const { name, run: act } of [...serviceTests, ...rewriteTests]) {
    try {
      await Promise.race([act(), tooLate()]);
      console.log(`ok ${name}`);
    } catch (fault) {
      failed.push(name);
      console.log(`not ok ${name}\n# ${String(fault instanceof Error ? fault.stack : fault).replaceAll('\n', '\n# ')}`);
    }
  }
  if (failed.length > 0) throw new Error(`failed: ${failed.join('; ')}`);
}

function tooLate(): Promise<never> {
  return new Promise((_resolve, reject) => setTimeout(() => reject(new Error(`not done in ${LIMIT_MS / 1000} s`)), LIMIT_MS));
}
