/** Every method of Lacuna's own beside LSP, with its types. What they mean is in `lsp_server/features`. */

import {
  NotificationType,
  type ProgressToken,
  type Range,
  RequestType,
  type TextDocumentIdentifier,
} from 'vscode-languageclient/node';

/** What the client asks for in `capabilities.experimental.lacuna`. */
export interface ExperimentalCapabilities {
  readonly drafts: boolean;
  readonly status: boolean;
}

/** A half-denoised text, at most 20 a second. */
export interface DraftParams {
  readonly uri: string;
  readonly version: number;
  readonly range: Range;
  readonly text: string;
  /** Code points at the start of `text` that will not change any more. */
  readonly settled: number;
  readonly step: number;
  readonly steps: number;
  /** Which of several holes it is of, from 0. */
  readonly hole?: number;
  /** The `workDoneToken` of the request it belongs to. */
  readonly token?: ProgressToken;
}

export const DraftNotification = new NotificationType<DraftParams>('lacuna/draft');

export type EngineState = 'idle' | 'starting' | 'loading' | 'ready' | 'busy' | 'failed';

/** Sent when it changes. */
export interface StatusParams {
  readonly state: EngineState;
  readonly message: string;
  /** What to do about a failure. */
  readonly remedy: string;
  /** Of a download or of loading. */
  readonly percent: number | null;
  readonly model: string;
}

export const StatusNotification = new NotificationType<StatusParams>('lacuna/status');

export interface VersionedDocument extends TextDocumentIdentifier {
  readonly version?: number;
}

export interface RewriteParams {
  readonly textDocument: VersionedDocument;
  readonly range: Range;
  /** Several instructions, one a line, refine each other. */
  readonly instruction: string;
  /** 0 is the likeliest text; each other number gives another one. */
  readonly seed?: number;
  readonly workDoneToken?: ProgressToken;
}

export interface Replacement {
  readonly range: Range;
  readonly newText: string;
}

export interface RewriteResult {
  readonly version: number;
  /** The selection, which may have moved. */
  readonly range: Range;
  readonly newText: string;
  /** Changed lines, or the changed words of one line, that make `newText` of the selection: in order, not overlapping. */
  readonly hunks: readonly Replacement[];
  readonly note?: string;
}

export const RewriteRequest = new RequestType<RewriteParams, RewriteResult | null, void>('lacuna/rewrite');

export interface FillHolesParams {
  readonly textDocument: VersionedDocument;
  /** A range with markers in it stands for its holes, any other is a hole itself. */
  readonly ranges: readonly Range[];
  readonly workDoneToken?: ProgressToken;
}

export interface FillHolesResult {
  readonly version: number;
  /** One for each hole in the order asked; null where nothing could be filled. */
  readonly holes: readonly { readonly range: Range; readonly newText: string | null }[];
}

export const FillHolesRequest = new RequestType<FillHolesParams, FillHolesResult | null, void>('lacuna/fillHoles');

/** Code action kind of "Fill N holes". */
export const FILL_HOLES_KIND = 'refactor.rewrite.lacuna.fill_holes';

/** Commands that the server announces; the language client registers them by itself. */
export const SERVER_COMMANDS = ['lacuna.rewrite', 'lacuna.apply', 'lacuna.status', 'lacuna.accepted'] as const;
