/** One window of VS Code as a person uses it: keys and mouse, and what stands on the screen. */
import type { Locator, Page } from 'playwright-core';
import { Documents } from './documents.ts';
import { Probe } from './probe.ts';
import { eventually } from './wait.ts';

const START_MS = 120_000;
const ACTIVE_EDITOR = '.editor-group-container.active .editor-instance .monaco-editor';

/** Non-breaking blanks, which the editor draws for blanks, as blanks. */
export const plain = (text: string): string => text.replaceAll('\u00a0', ' ').replaceAll('\u200b', '').replaceAll('\u200c', '');

export interface Decoration {
  readonly text: string;
  /** As CSS says it. */
  readonly color: string;
}

export class Workbench {
  readonly page: Page;
  readonly probe: Probe;
  readonly documents: Documents;

  private constructor(page: Page, probe: Probe) {
    this.page = page;
    this.probe = probe;
    this.documents = new Documents(probe);
  }

  /** Opens a folder in `page`, and waits until the window and its extension host answer. */
  static async open(page: Page, server: { readonly url: string; readonly probes: string }, folder: string): Promise<Workbench> {
    const workbench = new Workbench(page, new Probe(server.probes, folder));
    await page.goto(`${server.url}/?folder=${encodeURIComponent(folder)}`, { waitUntil: 'domcontentloaded' });
    await page.locator('.monaco-workbench').waitFor({ timeout: START_MS });
    await eventually('the extension host', () => workbench.probe.evaluate((vscode) => vscode.version, undefined), START_MS);
    return workbench;
  }

  async press(...keys: readonly string[]): Promise<void> {
    for (const key of keys) await this.page.keyboard.press(key);
  }

  async type(text: string): Promise<void> {
    await this.page.keyboard.type(text, { delay: 20 });
  }

  /**
   * Types into an editor that was just made, which takes keys some time before it asks for anything to show: slowly at
   * first, until `isAsked` says that it does. (A key typed a second time would be one taken back, which asks nothing.)
   */
  async typeWatched(text: string, isAsked: () => boolean): Promise<void> {
    const letters = [...text];
    while (letters.length > 1 && !isAsked()) {
      await this.type(letters.shift() ?? '');
      await eventually('the new editor to ask', isAsked, 2000).catch(() => false);
    }
    await this.type(letters.join(''));
  }

  /** Runs a command by its title in the palette, which may be inert while an earlier one closes: tried again. */
  async run(title: string): Promise<void> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        await this.quickInput.waitFor({ state: 'hidden', timeout: 5000 });
        await this.press('F1');
        await this.input.fill(`>${title}`, { timeout: 5000 });
        await this.row(title).first().click({ timeout: 5000 });
        return;
      } catch (error) {
        if (attempt === 4) throw error;
        await this.press('Escape');
      }
    }
  }

  /** Types into the box that asks, whose text or hint holds `hint`, and presses Enter. */
  async answer(text: string, hint = ''): Promise<void> {
    await this.quickInput.filter({ visible: true }).waitFor();
    await eventually(`a box that asks for ${hint}`, async () => {
      const words = `${await this.quickInput.innerText()} ${await this.input.getAttribute('placeholder')}`;
      return words.includes(hint);
    });
    await this.input.fill(text);
    await this.press('Enter');
  }

  /** Chooses the entry that holds `label` in the list that is open. */
  async choose(label: string): Promise<void> {
    await this.row(label).first().click();
  }

  /** The suggestion on the screen, or '' when there is none. */
  async ghost(): Promise<string> {
    const first = (await this.shown('.monaco-editor .ghost-text-decoration, .monaco-editor .ghost-text-decoration-preview')).join('');
    return [first, ...(await this.shown('.monaco-editor .suggest-preview-text .view-line'))].join('\n');
  }

  /** Waits for ghost text that holds `text`. */
  async ghostWith(text: string): Promise<string> {
    return eventually(`ghost text with ${JSON.stringify(text)}`, async () => {
      const ghost = await this.ghost();
      if (!ghost.includes(text)) throw new Error(JSON.stringify(ghost));
      return ghost;
    });
  }

  async noGhost(): Promise<void> {
    await eventually('no ghost text', async () => (await this.ghost()) === '');
  }

  /** What the lines of the active editor show, decorations included, top to bottom. */
  async screenLines(): Promise<readonly string[]> {
    return this.shown(`${ACTIVE_EDITOR} .view-lines > .view-line`);
  }

  /** What decorations write into the lines of the active editor, in the order in which one reads. */
  async decorations(): Promise<readonly Decoration[]> {
    const found = await this.page.evaluate((editor) => {
      const pieces = [...document.querySelectorAll<HTMLElement>(`${editor} .view-line span`)].flatMap((span) =>
        ['::before', '::after'].map((part) => ({ box: span.getBoundingClientRect(), style: getComputedStyle(span, part) })),
      );
      const written = pieces.filter(({ style }) => style.content !== 'none' && style.content !== 'normal');
      const sorted = written.sort((one, other) => one.box.y - other.box.y || one.box.x - other.box.x);
      return sorted.map(({ style }) => ({ text: JSON.parse(style.content.replaceAll(/\\([^"\\])/g, '$1')) as string, color: style.color }));
    }, ACTIVE_EDITOR);
    return found.map(({ text, color }) => ({ text: plain(text), color }));
  }

  /** The texts of what is there and has a size, in the order in which one reads. */
  async shown(selector: string): Promise<readonly string[]> {
    const texts = await this.page.evaluate((wanted) => {
      const parts = [...document.querySelectorAll<HTMLElement>(wanted)].map((part) => ({ text: part.innerText, box: part.getBoundingClientRect() }));
      const seen = parts.filter((part) => part.box.height > 0);
      return seen.sort((one, other) => one.box.y - other.box.y || one.box.x - other.box.x).map((part) => part.text);
    }, selector);
    return texts.map(plain);
  }

  /** A command above a line of the active editor. */
  lens(text: string | RegExp): Locator {
    return this.activeEditor.locator('.codelens-decoration a', { hasText: text });
  }

  /** A button in the title of the active editor. */
  titleButton(name: string): Locator {
    return this.page.locator('.editor-group-container.active .editor-actions').getByRole('button', { name });
  }

  /** Texts of the active editor that are drawn weaker than others, or not at all. */
  async dimmed(): Promise<readonly string[]> {
    return this.page.evaluate((editor) => {
      const spans = [...document.querySelectorAll<HTMLElement>(`${editor} .view-line span`)];
      return spans.filter((span) => Number(getComputedStyle(span).opacity) < 1).map((span) => span.innerText);
    }, ACTIVE_EDITOR);
  }

  /** How many stretches of the active editor have the colour of a selection. */
  async stripes(): Promise<number> {
    return this.activeEditor.locator('.selected-text').count();
  }

  /** The extension's own item; the server's progress has one of its own while it lasts. */
  get statusItem(): Locator {
    return this.page.locator('.statusbar-item[id="lacuna.lacuna.lacuna.status"]');
  }

  /** What the status bar's item says of Lacuna in words. */
  async lacunaStatus(): Promise<string> {
    return (await this.statusItem.getAttribute('aria-label', { timeout: 1000 })) ?? '';
  }

  async lacunaSays(words: RegExp, patience?: number): Promise<void> {
    await eventually(`a status like ${String(words)}`, async () => {
      const said = await this.lacunaStatus();
      if (!words.test(said)) throw new Error(said);
      return true;
    }, patience);
  }

  /** Waits until the server has its settings: what is asked before is answered with nothing, and not asked again. */
  async hasSettings(): Promise<void> {
    await eventually('the settings to be there', () =>
      this.probe.evaluate(
        async (vscode) => (await vscode.commands.executeCommand<{ enabled: boolean }>('lacuna.status')).enabled,
        undefined,
      ),
    );
  }

  toast(text: string | RegExp): Locator {
    return this.page.locator('.notifications-toasts .notification-list-item', { hasText: text });
  }

  get toasts(): Locator {
    return this.page.locator('.notifications-toasts .notification-list-item');
  }

  /** Waits until so many messages are on the screen: a progress that has ended leaves it a moment later. */
  async toastsAre(count: number): Promise<void> {
    await eventually(`${count} messages on the screen`, async () => (await this.toasts.count()) === count);
  }

  get dialog(): Locator {
    return this.page.locator('.monaco-dialog-box');
  }

  get quickInput(): Locator {
    return this.page.locator('.quick-input-widget');
  }

  get input(): Locator {
    return this.quickInput.locator('input.input').first();
  }

  get activeEditor(): Locator {
    return this.page.locator(ACTIVE_EDITOR).first();
  }

  row(label: string): Locator {
    return this.quickInput.locator('.monaco-list-row', { hasText: label });
  }

  /** Puts the keys into the active editor. */
  async focus(): Promise<void> {
    await this.probe.evaluate((vscode) => vscode.commands.executeCommand('workbench.action.focusActiveEditorGroup'), undefined);
  }

  /** Nothing open, nothing asked, nothing told: what every story starts from. */
  async tidy(): Promise<void> {
    // Away from anything that would explain itself.
    await this.page.mouse.move(26, 500);
    await this.press('Escape', 'Escape');
    await this.probe.evaluate(async (vscode) => {
      await vscode.commands.executeCommand('notifications.clearAll');
      await vscode.commands.executeCommand('workbench.action.closeQuickOpen');
      await vscode.commands.executeCommand('workbench.action.closePanel');
      while (vscode.window.tabGroups.all.some((group) => group.tabs.length > 0)) {
        await vscode.commands.executeCommand('workbench.action.revertAndCloseActiveEditor');
      }
    }, undefined);
    await this.page.locator('.editor-group-container .tab').first().waitFor({ state: 'detached' });
  }
}
