import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  followHunks,
  hunksFrom,
  nearestHunk,
  nearestPlace,
  needsDiff,
  preview,
  propose,
  rowsBeside,
  withLineEnds,
} from '../src/core/hunks';

const range = (a: number, b: number, c: number, d: number) => ({
  start: { line: a, character: b },
  end: { line: c, character: d },
});

test('hunks are numbered in the order of the text', () => {
  const hunks = hunksFrom([
    { range: range(3, 0, 3, 1), newText: 'b' },
    { range: range(1, 0, 1, 1), newText: 'a' },
  ]);
  assert.deepEqual(
    hunks.map(({ id, newText }) => [id, newText]),
    [
      [0, 'a'],
      [1, 'b'],
    ],
  );
});

test('a change takes away the hunk it touches, and moves the one below', () => {
  const hunks = hunksFrom([
    { range: range(1, 0, 1, 4), newText: 'a' },
    { range: range(3, 2, 3, 4), newText: 'b' },
  ]);
  const left = followHunks(hunks, { range: range(1, 2, 1, 2), text: 'x\n' });
  assert.deepEqual(left, [{ id: 1, range: range(4, 2, 4, 4), newText: 'b' }]);
});

test('a proposal is the text with the hunks in it, and knows where they stand', () => {
  const { text, places } = propose('abcdef', [
    { id: 4, start: 1, end: 3, newText: 'XYZ' },
    { id: 7, start: 6, end: 6, newText: '!' },
  ]);
  assert.equal(text, 'aXYZdef!');
  assert.deepEqual(places, [
    { id: 4, start: 1, end: 4 },
    { id: 7, start: 7, end: 8 },
  ]);
});

test('a hunk that only removes still has a place in the proposal', () => {
  const { text, places } = propose('abc', [{ id: 0, start: 1, end: 2, newText: '' }]);
  assert.equal(text, 'ac');
  assert.deepEqual(places, [{ id: 0, start: 1, end: 1 }]);
});

test('no hunk left means the text as it is', () => {
  assert.deepEqual(propose('abc', []), { text: 'abc', places: [] });
});

test('the hunk at the cursor is meant, else the nearest', () => {
  const places = [
    { id: 1, start: 5, end: 9 },
    { id: 2, start: 20, end: 22 },
  ];
  assert.equal(nearestPlace(places, 7), 1);
  assert.equal(nearestPlace(places, 0), 1);
  assert.equal(nearestPlace(places, 16), 2);
  assert.equal(nearestPlace([], 3), undefined);
});

test('in the document a hunk around the cursor goes before a nearer line', () => {
  const hunks = hunksFrom([
    { range: range(2, 0, 2, 3), newText: 'a' },
    { range: range(2, 8, 2, 9), newText: 'b' },
    { range: range(9, 0, 9, 1), newText: 'c' },
  ]);
  assert.equal(nearestHunk(hunks, { line: 2, character: 8 }), 1);
  assert.equal(nearestHunk(hunks, { line: 7, character: 0 }), 2);
  assert.equal(nearestHunk([], { line: 7, character: 0 }), undefined);
});

test('only new lines need a diff', () => {
  assert.equal(needsDiff(hunksFrom([{ range: range(1, 0, 2, 0), newText: 'one line' }])), false);
  assert.equal(needsDiff(hunksFrom([{ range: range(1, 0, 1, 0), newText: 'two\nlines' }])), true);
  assert.equal(needsDiff(hunksFrom([{ range: range(1, 0, 2, 4), newText: 'two\nlines' }])), false);
});

test('a new text takes the line ends of the document', () => {
  assert.equal(withLineEnds('a\nb\r\nc', '\r\n'), 'a\r\nb\r\nc');
  assert.equal(withLineEnds('a\r\nb', '\n'), 'a\nb');
});

test('a preview is one line, without the indentation of the others, and not too long', () => {
  const [hunk] = hunksFrom([{ range: range(1, 0, 1, 4), newText: '    if x:\n        y()' }]);
  assert.deepEqual(hunk && preview(hunk), { isAbove: false, text: '    if x: ⏎ y()' });
  const [long] = hunksFrom([{ range: range(1, 0, 1, 4), newText: 'x'.repeat(5000) }]);
  assert.ok(long && preview(long).text.length < 200);
});

test('new lines are shown behind the line above, where they begin', () => {
  const shown = (line: number, newText: string) =>
    hunksFrom([{ range: range(line, 0, line, 0), newText }]).map((hunk) => preview(hunk));
  assert.deepEqual(shown(3, '    a\n    b\n'), [{ isAbove: true, text: ' ⏎ a ⏎ b' }]);
  assert.deepEqual(shown(0, 'a\nb\n'), [{ isAbove: false, text: 'a ⏎ b ⏎ ' }]);
  assert.deepEqual(shown(3, 'word '), [{ isAbove: false, text: 'word ' }]);
});

test('as many new lines as old ones are shown each beside its own', () => {
  const rows = (newText: string) => hunksFrom([{ range: range(4, 4, 5, 9), newText }]).map((hunk) => rowsBeside(hunk));
  assert.deepEqual(rows('def f(w):\r\n    return w'), [
    [
      { line: 4, text: 'def f(w):' },
      { line: 5, text: 'return w' },
    ],
  ]);
  assert.deepEqual(rows('one line'), [[]]);
  assert.deepEqual(rows('a\nb\nc'), [[]]);
});
