/** Debian's Chromium, headless, that can reach nothing but the loopback. */
import { type Browser, type BrowserContext, type Page, chromium as playwright } from 'playwright-core';
import { chromium } from './places.ts';

const QUIET = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--disable-dev-shm-usage',
  // A window in the background is not to be slowed down: two are open in one of the stories.
  '--disable-background-timer-throttling',
  '--disable-renderer-backgrounding',
  '--disable-backgrounding-occluded-windows',
];

const LOCAL = new Set(['data:', 'blob:', 'vscode-file:', 'vscode-remote-resource:']);

export class Chromium {
  /** Hosts that a page asked for and did not get. */
  readonly refused = new Set<string>();
  readonly pageErrors: string[] = [];
  private readonly browser: Browser;

  private constructor(browser: Browser) {
    this.browser = browser;
  }

  static async start(): Promise<Chromium> {
    return new Chromium(await playwright.launch({ executablePath: chromium(), headless: true, args: QUIET }));
  }

  /** A window of its own, with its own storage. */
  async window(): Promise<Page> {
    const context = await this.browser.newContext({ viewport: { width: 1280, height: 800 }, reducedMotion: 'reduce', permissions: ['clipboard-read', 'clipboard-write'] });
    await this.stayLocal(context);
    const page = await context.newPage();
    page.setDefaultTimeout(30_000);
    page.on('pageerror', (error) => this.pageErrors.push(error.message));
    return page;
  }

  async stop(): Promise<void> {
    await this.browser.close();
  }

  private async stayLocal(context: BrowserContext): Promise<void> {
    const outside = (url: URL): boolean => url.hostname !== '127.0.0.1' && !LOCAL.has(url.protocol);
    await context.route(outside, async (route) => {
      this.refused.add(new URL(route.request().url()).hostname);
      await route.abort();
    });
  }
}
