/** What the status bar says. Pure. */

import type { Translate } from './translate';

export type ServerState = 'missing' | 'stopped' | 'starting' | 'running' | 'crashed';

export interface Known {
  readonly server: ServerState;
  /** What to do when the server is missing or crashed. */
  readonly remedy: string;
  readonly engine: {
    readonly state: 'idle' | 'starting' | 'loading' | 'ready' | 'busy' | 'failed';
    readonly message: string;
    readonly remedy: string;
    readonly percent: number | null;
    readonly model: string;
  };
  /** "until restart" is Infinity. */
  readonly snoozedFor: number;
  /** The active document's language where nothing is suggested in it. */
  readonly disabledLanguage: string;
  readonly rewrites: number;
}

export type Severity = 'plain' | 'warning' | 'error';

export interface View {
  readonly text: string;
  readonly tooltip: string;
  readonly severity: Severity;
}

const NAME = 'Lacuna';

export function statusView(known: Known, t: Translate): View {
  return serverView(known, t) ?? snoozeView(known, t) ?? engineView(known, t);
}

function serverView({ server, remedy }: Known, t: Translate): View | undefined {
  switch (server) {
    case 'missing':
      return view('$(warning)', t('Lacuna is not installed here.'), 'warning', remedy);
    case 'crashed':
      return view('$(error)', t('The language server of Lacuna has stopped.'), 'error', remedy);
    case 'stopped':
      return view('$(circle-slash)', t('Lacuna is not running.'), 'plain');
    case 'starting':
      return view('$(loading~spin)', t('Lacuna is starting.'), 'plain');
    case 'running':
      return undefined;
  }
}

function snoozeView({ snoozedFor, engine }: Known, t: Translate): View | undefined {
  if (snoozedFor <= 0 || engine.state === 'failed') {
    return undefined;
  }
  const until = Number.isFinite(snoozedFor)
    ? t('Ghost text is snoozed for {0} min.', Math.ceil(snoozedFor / 60_000))
    : t('Ghost text is snoozed until you wake it.');
  return view('$(bell-slash)', until, 'plain');
}

function engineView({ engine, disabledLanguage, rewrites }: Known, t: Translate): View {
  const percent = engine.percent === null ? '' : ` ${Math.round(engine.percent)} %`;
  const model = engine.model && t('Model: {0}', engine.model);
  switch (engine.state) {
    case 'failed':
      return view('$(error)', engine.message || t('The engine could not be used.'), 'error', engine.remedy);
    case 'starting':
    case 'loading':
      return view('$(loading~spin)', engine.message || t('The engine is loading.'), 'plain', model, percent);
    case 'busy':
      return view('$(loading~spin)', t('Lacuna is at work.'), 'plain', model);
    case 'idle':
    case 'ready':
      break;
  }
  if (rewrites > 0) {
    return view('$(loading~spin)', t('Rewrites running: {0}', rewrites), 'plain', model);
  }
  if (disabledLanguage) {
    return view('$(circle-slash)', t('No ghost text in {0}.', disabledLanguage), 'plain', model);
  }
  const word = engine.state === 'ready' ? t('Lacuna is ready.') : t('The engine sleeps; it wakes as you type.');
  return view('$(sparkle)', word, 'plain', model);
}

function view(icon: string, message: string, severity: Severity, more = '', behind = ''): View {
  return { text: `${icon} ${NAME}${behind}`, tooltip: [message, more].filter(Boolean).join('\n'), severity };
}
