/** How a message is put into the person's language; the shell gives `vscode.l10n.t`. */
export type Translate = (message: string, ...values: (string | number)[]) => string;
