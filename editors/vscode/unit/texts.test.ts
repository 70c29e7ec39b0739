/** Whether everything that a person reads can be said in their language, and is said rightly in those there are. */

import assert from 'node:assert/strict';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import ts from 'typescript';

type Texts = Record<string, string>;

const read = (name: string) => readFileSync(name, 'utf8');
const textsOf = (name: string) => JSON.parse(read(name)) as Texts;
const LANGUAGES = readdirSync('l10n').flatMap((name) => /^bundle\.l10n\.([\w-]+)\.json$/.exec(name)?.[1] ?? []);

test('every text of the manifest that a person reads is named there and stands in package.nls.json', () => {
  const manifest: unknown = JSON.parse(read('package.json'));
  const shown = [
    'displayName',
    'description',
    'title',
    'shortTitle',
    'label',
    'markdownDescription',
    'enumDescriptions',
  ];
  const found: string[] = [];
  const look = (value: unknown, key: string) => {
    if (typeof value === 'string') {
      if (shown.includes(key)) {
        found.push(value);
      }
    } else if (typeof value === 'object' && value !== null) {
      const inside = Array.isArray(value) ? value.map((one): [string, unknown] => [key, one]) : Object.entries(value);
      inside.forEach(([name, one]) => {
        look(one, name);
      });
    }
  };
  look(manifest, '');
  assert.ok(found.length > 60);
  assert.deepEqual(
    found.filter((text) => !/^%[\w.]+%$/.test(text)),
    [],
  );
});

test('every text of the sources that a person reads goes through l10n', () => {
  const names = readdirSync('src', { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'));
  const found = names.flatMap((name) => untranslated(join('src', name)));
  assert.ok(names.length > 30);
  assert.deepEqual(found, []);
});

test('that rule sees what it is to see', () => {
  const seen = (text: string) => untranslatedIn(ts.createSourceFile('a.ts', text, ts.ScriptTarget.ES2022, true));
  assert.equal(seen("void tell('info', 'Failed.');").length, 1);
  assert.equal(seen("vscode.window.showQuickPick(list, { title: 'Models' });").length, 1);
  assert.equal(seen('throw new Error(`no model in ${file}`);').length, 1);
  assert.equal(seen("const words = 'Select a model';").length, 1);
  assert.equal(seen("lens('$(check) Accept', 'lacuna.accept');").length, 1);
  assert.equal(seen("void tell('info', t('Failed.')); log.info('starting it now');").length, 0);
  assert.equal(seen("import x from 'a b'; const key = 'lacuna.running'; set('lacuna.rewrite', 'review');").length, 0);
});

for (const language of LANGUAGES) {
  test(`${language}: every message is there, and none is left over`, () => {
    assert.deepEqual(
      Object.keys(textsOf(`l10n/bundle.l10n.${language}.json`)).sort(),
      Object.keys(textsOf('l10n/bundle.l10n.json')).sort(),
    );
    const [own, all] = [`package.nls.${language}.json`, 'package.nls.json'].map((name) => Object.keys(textsOf(name)));
    assert.ok(own && all);
    const leftOver = own.filter((key) => !all.includes(key));
    assert.deepEqual(leftOver, []);
    // The settings of the server come from its generator: one that is new is shown in English until it is translated.
    const missing = all.filter((key) => !own.includes(key) && !key.startsWith('lacuna.settings.'));
    assert.deepEqual(missing, []);
  });

  test(`${language}: places, icons, links and code are those of the original`, () => {
    for (const [original, name] of [
      ['l10n/bundle.l10n.json', `l10n/bundle.l10n.${language}.json`],
      ['package.nls.json', `package.nls.${language}.json`],
    ] as const) {
      const [of, texts] = [textsOf(original), textsOf(name)];
      for (const [key, text] of Object.entries(texts)) {
        assert.deepEqual(fixedParts(text), fixedParts(of[key] ?? ''), key);
        assert.ok(text.trim(), key);
      }
    }
  });

  test(`${language}: the pages of the walkthrough are there, with the same code`, () => {
    const pages = readdirSync('walkthrough').filter((name) => /^\w+\.md$/.test(name));
    assert.ok(pages.length > 3);
    for (const page of pages) {
      const own = join('walkthrough', page.replace(/md$/, `nls.${language}.md`));
      assert.ok(existsSync(own), own);
      assert.deepEqual(codeIn(read(own)), codeIn(read(join('walkthrough', page))), page);
    }
  });
}

test('there is a language beside English', () => {
  assert.ok(LANGUAGES.includes('de'));
});

/** What a translation must leave as it is, in any order. */
function fixedParts(text: string): string[] {
  return [...text.matchAll(/\{\d\}|\$\([\w~-]+\)|\(command:[^)]*\)|`[^`]*`|<fill>/g)].map(([part]) => part).sort();
}

/** Code and keys that are given as such; keys that have names in words are not. */
function codeIn(text: string): string[] {
  const fences = [...text.matchAll(/```[^]*?```/g)].map(([part]) => part);
  const rest = text.replaceAll(/```[^]*?```/g, '');
  return [...fences, ...[...rest.matchAll(/`[^`]*`/g)].map(([part]) => part)].sort();
}

function untranslated(file: string): string[] {
  return untranslatedIn(ts.createSourceFile(file, read(file), ts.ScriptTarget.ES2022, true));
}

/** Texts in words that are given neither to l10n nor to the log, each with its place. */
function untranslatedIn(source: ts.SourceFile): string[] {
  const found: string[] = [];
  const visit = (node: ts.Node) => {
    if (ts.isImportDeclaration(node) || isTaken(node)) {
      return;
    }
    if ((ts.isStringLiteralLike(node) || ts.isTemplateExpression(node)) && isSaid(node, source)) {
      const { line } = source.getLineAndCharacterOfPosition(node.getStart(source));
      found.push(`${source.fileName}:${line + 1} ${node.getText(source)}`);
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  return found;
}

/** A call whose texts are translated, or read by nobody but who looks into the log. */
function isTaken(node: ts.Node): boolean {
  return ts.isCallExpression(node) && /(?:\bl10n\.t|\bt|\blog\.\w+)$/.test(node.expression.getText());
}

/** Two words, or a capital letter and what follows, where something is shown; two words, anywhere else. */
function isSaid(node: ts.StringLiteralLike | ts.TemplateExpression, source: ts.SourceFile): boolean {
  const pieces = ts.isTemplateExpression(node)
    ? [node.head.text, ...node.templateSpans.map(({ literal }) => literal.text)]
    : [node.text];
  // Its own name is the same in every language.
  const words = pieces.map((piece) => piece.replaceAll(/\$\([\w~-]+\)|^Lacuna(?:: )?$|^Lacuna: /g, ' ').trim());
  const hasWords = words.some((piece) => /[a-z]{2,}[,:;]? +[a-z]+/i.test(piece));
  return hasWords || (isShown(node, source) && words.some((piece) => /^[A-Z][a-z]+/.test(piece)));
}

const SHOWING =
  /\b(?:show\w*Message|showQuickPick|showInputBox|showOpenDialog|withProgress|create\w+|tell|view|lens|link)$/;

function isShown(node: ts.Node, source: ts.SourceFile): boolean {
  for (let at = node.parent as ts.Node | undefined; at; at = at.parent as ts.Node | undefined) {
    if (ts.isCallExpression(at)) {
      return SHOWING.test(at.expression.getText(source));
    }
    if (ts.isFunctionLike(at)) {
      return false;
    }
  }
  return false;
}
