/** What a person is told of something that did not work out, and how loudly. Pure. */

import type { Translate } from './translate';

/**
 * info: nothing is wrong, the person has yet to do something. warning: what was asked for was not done, and asking again
 * may do. error: something must be mended first.
 */
export type Tone = 'info' | 'warning' | 'error';

export interface Said {
  readonly tone: Tone;
  readonly message: string;
}

/** What could not be done just now, in words for a person. */
export class Refusal extends Error {}

/** The codes of JSON-RPC's and LSP's errors that are told apart. */
export const Code = {
  requestCancelled: -32800,
  contentModified: -32801,
  serverCancelled: -32802,
  connectionInactive: -32096,
  pendingResponseRejected: -32097,
} as const;

/** What is said of a request that failed; undefined when that is what the person wanted. */
export function saidOf(fault: unknown, t: Translate): Said | undefined {
  switch (codeOf(fault)) {
    case Code.requestCancelled:
    case Code.serverCancelled:
      return undefined;
    case Code.contentModified:
      return {
        tone: 'warning',
        message: t('The text changed meanwhile, and was left as it is. Select it and try again.'),
      };
    case Code.pendingResponseRejected:
    case Code.connectionInactive:
      return {
        tone: 'warning',
        message: t('The language server stopped meanwhile; the text is as it was. Try again.'),
      };
    default:
      return { tone: fault instanceof Refusal ? 'warning' : 'error', message: messageOf(fault) };
  }
}

/** The words of whatever was thrown. */
export function messageOf(fault: unknown): string {
  return fault instanceof Error ? fault.message : String(fault);
}

function codeOf(fault: unknown): unknown {
  return fault instanceof Error && 'code' in fault ? fault.code : undefined;
}
