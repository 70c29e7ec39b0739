/** Inline rewrites through the extension's own objects: what happens to the text, whatever is done meanwhile. */
import * as vscode from 'vscode';
import { assert, command, eventually, lacuna, reply, select, show, steering, textIs } from './help.ts';
import type { HostTest } from './suite.ts';

const TEXT = 'one = 1\ntwo = 2\nthree = 3\n';

async function begin(editor: vscode.TextEditor, text: string, instruction: string): Promise<void> {
  select(editor, text);
  await command('lacuna.inlineRewrite', instruction);
}

/** The only rewrite of a document, with something to decide. */
async function decided(editor: vscode.TextEditor) {
  const { rewrites } = await lacuna();
  return eventually('a rewrite to decide on', () => rewrites.of(editor.document.uri).find((one) => one.phase === 'review'));
}

async function none(editor: vscode.TextEditor): Promise<void> {
  const { rewrites } = await lacuna();
  await eventually('no rewrite', () => rewrites.of(editor.document.uri).length === 0);
}

const oneUndo: HostTest = {
  name: 'hunks accepted one after another are one undo step',
  run: async () => {
    reply({ kind: 'rewrite', text: 'one = 11\ntwo = 2\nthree = 33' });
    const editor = await show('undo.py', TEXT);
    await begin(editor, TEXT.trimEnd(), 'Larger');
    const session = await decided(editor);
    assert.equal(session.hunks.length, 2);
    for (const { id } of [...session.hunks]) await command('lacuna.acceptHunk', { session: session.id, hunk: id });
    await textIs(editor, 'one = 11\ntwo = 2\nthree = 33\n');
    await none(editor);
    await command('undo');
    await textIs(editor, TEXT);
    await command('redo');
    await textIs(editor, 'one = 11\ntwo = 2\nthree = 33\n');
  },
};

const selectionLetGo: HostTest = {
  name: 'what is rewritten is not selected meanwhile, and is again when nothing came of it',
  run: async () => {
    reply({ kind: 'rewrite', text: 'two = 22', hold: true });
    const editor = await show('selected.py', TEXT);
    const { rewrites } = await lacuna();
    await begin(editor, 'two = 2', 'Larger');
    assert.ok(editor.selection.isEmpty && editor.selection.active.isEqual(new vscode.Position(1, 0)));
    await command('lacuna.cancelRewrite');
    await none(editor);
    assert.equal(editor.document.getText(editor.selection), 'two = 2');

    await begin(editor, 'two = 2', 'Larger');
    select(editor, 'three');
    const [session] = rewrites.of(editor.document.uri);
    assert.ok(session);
    rewrites.close(session);
    await none(editor);
    assert.equal(editor.document.getText(editor.selection), 'three', 'who went on elsewhere keeps that');
  },
};

const editedInside: HostTest = {
  name: 'typing into the selection of a running rewrite ends it and keeps what was typed',
  run: async () => {
    reply({ kind: 'rewrite', text: 'two = 22', hold: true });
    const editor = await show('inside.py', TEXT);
    await begin(editor, 'two = 2', 'Larger');
    const cancelled = cancels();
    await eventually('the engine to be asked', () => steering.requests('Rewrite').at(-1)?.selection === 'two = 2');
    await editor.edit((builder) => builder.insert(new vscode.Position(1, 3), 'X'));
    await eventually('the engine to stop', () => cancels() > cancelled);
    await none(editor);
    assert.equal(editor.document.getText(), 'one = 1\ntwoX = 2\nthree = 3\n');
  },
};

const editedHunk: HostTest = {
  name: 'typing into a proposed change takes that one away, and the others stand where they belong',
  run: async () => {
    reply({ kind: 'rewrite', text: 'one = 11\ntwo = 2\nthree = 33' });
    const editor = await show('hunk.py', TEXT);
    await begin(editor, TEXT.trimEnd(), 'Larger');
    const session = await decided(editor);
    const first = session.hunks[0]?.range.start;
    assert.ok(first);
    await editor.edit((builder) => builder.replace(new vscode.Range(0, 6, 0, 7), '7'));
    await editor.edit((builder) => builder.insert(new vscode.Position(0, 0), 'zero = 0\n'));
    await command('lacuna.acceptRewrite', { session: session.id });
    await none(editor);
    const text = editor.document.getText();
    assert.ok(text.endsWith('two = 2\nthree = 33\n'), text);
    assert.ok(text.startsWith('zero = 0\none = 7'), text);
  },
};

const closedDocument: HostTest = {
  name: 'closing the document stops the engine',
  run: async () => {
    reply({ kind: 'rewrite', text: 'x', hold: true });
    const editor = await show('closed.py', TEXT);
    await begin(editor, 'two = 2', 'Larger');
    await eventually('the engine to be asked', () => steering.requests('Rewrite').at(-1)?.instruction?.includes('Larger'));
    const cancelled = cancels();
    await command('workbench.action.closeActiveEditor');
    await eventually('the engine to stop', () => cancels() > cancelled);
  },
};

const otherSeed: HostTest = {
  name: 'a retry asks for another text',
  run: async () => {
    reply({ kind: 'rewrite', text: 'two = 22' });
    const editor = await show('seed.py', TEXT);
    await begin(editor, 'two = 2', 'Larger');
    const session = await decided(editor);
    reply({ kind: 'rewrite', text: 'two = 222' });
    await command('lacuna.retryRewrite', { session: session.id });
    await eventually('another seed', () => (steering.requests('Rewrite').at(-1)?.seed ?? 0) > 0);
    await command('lacuna.acceptRewrite', { session: (await decided(editor)).id });
    await textIs(editor, 'one = 1\ntwo = 222\nthree = 3\n');
  },
};

const notebookCell: HostTest = {
  name: 'a cell of a notebook is rewritten',
  run: async () => {
    reply({ kind: 'rewrite', text: 'b = 22' });
    const cells = ['a = 1', 'b = 2'].map((source) => new vscode.NotebookCellData(vscode.NotebookCellKind.Code, source, 'python'));
    const notebook = await vscode.workspace.openNotebookDocument('jupyter-notebook', new vscode.NotebookData(cells));
    await vscode.window.showNotebookDocument(notebook);
    await command('notebook.focusBottom');
    await command('notebook.cell.edit');
    const editor = await eventually('the cell to be edited', () => {
      const active = vscode.window.activeTextEditor;
      return active?.document.getText() === 'b = 2' ? active : undefined;
    });
    await begin(editor, 'b = 2', 'Larger');
    const session = await decided(editor);
    await command('lacuna.acceptRewrite', { session: session.id });
    await eventually('the cell', () => notebook.cellAt(1).document.getText() === 'b = 22');
    assert.equal(notebook.cellAt(0).document.getText(), 'a = 1');
  },
};

export const rewriteTests = [oneUndo, selectionLetGo, editedInside, editedHunk, closedDocument, otherSeed, notebookCell];

function cancels(): number {
  return steering.seen().filter((seen) => seen.event === 'cancelled').length;
}
