/** Documents of one window, prepared and read through the extension host: exact, where the screen shows an excerpt. */
import type { Probe } from './probe.ts';
import { eventually } from './wait.ts';

export interface Place {
  readonly line: number;
  readonly character: number;
}

/** Comes back once the window has done what the extension host told it before: messages between them keep their order. */
const settled = async (probe: Probe): Promise<void> => {
  await probe.evaluate((vscode) => vscode.commands.executeCommand('setContext', 'lacunaProbe', true), undefined);
};

export class Documents {
  private readonly probe: Probe;

  constructor(probe: Probe) {
    this.probe = probe;
  }

  /** Opens a file of the workspace in the editor. `name` is relative to the folder. */
  async open(name: string): Promise<void> {
    await this.probe.evaluate(async (vscode, wanted) => {
      const folder = vscode.workspace.workspaceFolders?.[0]?.uri;
      if (folder === undefined) throw new Error('no folder is open');
      const document = await vscode.workspace.openTextDocument(vscode.Uri.joinPath(folder, wanted));
      await vscode.window.showTextDocument(document);
    }, name);
    await settled(this.probe);
  }

  /** Opens a document that has no file yet. */
  async untitled(language: string, content: string): Promise<void> {
    await this.probe.evaluate(async (vscode, options) => {
      await vscode.window.showTextDocument(await vscode.workspace.openTextDocument(options));
    }, { language, content });
    await settled(this.probe);
  }

  /** The text of the active editor, line ends as they are. */
  async text(): Promise<string> {
    return this.probe.evaluate((vscode) => vscode.window.activeTextEditor?.document.getText() ?? '', undefined);
  }

  /** The text of an open document that need not be in the active editor. */
  async textOf(name: string): Promise<string | null> {
    return this.probe.evaluate((vscode, wanted) => {
      const document = vscode.workspace.textDocuments.find((one) => one.uri.path.endsWith(`/${wanted}`));
      return document?.getText() ?? null;
    }, name);
  }

  async textIs(expected: string): Promise<void> {
    await eventually(`the text ${JSON.stringify(expected)}`, async () => {
      const text = await this.text();
      if (text !== expected) throw new Error(JSON.stringify(text));
      return true;
    });
  }

  /** Where the cursor is. */
  async cursor(): Promise<Place> {
    return this.probe.evaluate((vscode) => {
      const place = vscode.window.activeTextEditor?.selection.active;
      if (place === undefined) throw new Error('no editor is active');
      return { line: place.line, character: place.character };
    }, undefined);
  }

  /** What is selected in the active editor. */
  async selected(): Promise<string> {
    return this.probe.evaluate((vscode) => {
      const editor = vscode.window.activeTextEditor;
      return editor?.document.getText(editor.selection) ?? '';
    }, undefined);
  }

  /** Moves the cursor, or selects from `start` to `end`. Counts as the API counts: lines from 0, UTF-16 units. */
  async select(start: Place, end: Place = start): Promise<void> {
    await this.probe.evaluate((vscode, [from, to]) => {
      const editor = vscode.window.activeTextEditor;
      if (editor === undefined) throw new Error('no editor is active');
      const selection = new vscode.Selection(from.line, from.character, to.line, to.character);
      editor.selection = selection;
      editor.revealRange(selection);
    }, [start, end] as const);
    await settled(this.probe);
  }

  /** Selects the first occurrence of `text` in the active document. */
  async selectText(text: string): Promise<void> {
    await this.probe.evaluate((vscode, wanted) => {
      const editor = vscode.window.activeTextEditor;
      const at = editor?.document.getText().indexOf(wanted) ?? -1;
      if (editor === undefined || at < 0) throw new Error(`there is no ${JSON.stringify(wanted)}`);
      editor.selection = new vscode.Selection(editor.document.positionAt(at), editor.document.positionAt(at + wanted.length));
    }, text);
    await settled(this.probe);
  }

  /** An edit that comes from somewhere else than the keyboard: `text` at a place of the active document. */
  async insert(place: Place, text: string): Promise<void> {
    await this.probe.evaluate(async (vscode, [at, added]) => {
      const uri = vscode.window.activeTextEditor?.document.uri;
      if (uri === undefined) throw new Error('no editor is active');
      const edit = new vscode.WorkspaceEdit();
      edit.insert(uri, new vscode.Position(at.line, at.character), added);
      await vscode.workspace.applyEdit(edit);
    }, [place, text] as const);
  }

  async save(): Promise<void> {
    await this.probe.evaluate((vscode) => vscode.window.activeTextEditor?.document.save(), undefined);
  }

  /** Opens a notebook of the workspace. */
  async openNotebook(name: string): Promise<void> {
    await this.probe.evaluate(async (vscode, wanted) => {
      const folder = vscode.workspace.workspaceFolders?.[0]?.uri;
      if (folder === undefined) throw new Error('no folder is open');
      const notebook = await vscode.workspace.openNotebookDocument(vscode.Uri.joinPath(folder, wanted));
      await vscode.window.showNotebookDocument(notebook);
    }, name);
  }

  /** Puts the keys into a cell of the active notebook. */
  async editCell(index: number): Promise<void> {
    await this.probe.evaluate(async (vscode, wanted) => {
      const editor = vscode.window.activeNotebookEditor;
      if (editor === undefined) throw new Error('no notebook is active');
      editor.selections = [new vscode.NotebookRange(wanted, wanted + 1)];
      await vscode.commands.executeCommand('notebook.cell.edit');
    }, index);
    await settled(this.probe);
  }

  /** The text of a cell. */
  async cell(name: string, index: number): Promise<string> {
    return this.probe.evaluate((vscode, [wanted, at]) => {
      const notebook = vscode.workspace.notebookDocuments.find((one) => one.uri.path.endsWith(wanted));
      return notebook?.cellAt(at).document.getText() ?? '';
    }, [name, index] as const);
  }

  /** Changes a setting of the user; undefined gives it back its default. */
  async setting(name: string, value: unknown): Promise<void> {
    await this.probe.evaluate(
      (vscode, [key, wanted]) => vscode.workspace.getConfiguration().update(key, wanted, vscode.ConfigurationTarget.Global),
      [name, value] as const,
    );
  }
}
