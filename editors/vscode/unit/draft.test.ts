import assert from 'node:assert/strict';
import { test } from 'node:test';
import { draftRows, shownText, unitsOf } from '../src/core/draft';

test('each line of a draft gets a row, cut where it is no longer settled', () => {
  assert.deepEqual(draftRows('ab\ncd\nef', 4, 3), [
    { settled: 'ab', undecided: '' },
    { settled: 'c', undecided: 'd' },
    { settled: '', undecided: 'ef' },
  ]);
});

test('settled counts code points: an emoji before it is one', () => {
  assert.deepEqual(draftRows('🙂🙂x', 2, 1), [{ settled: '🙂🙂', undecided: 'x' }]);
  assert.equal(unitsOf('a🙂b', 2), 3);
  assert.equal(unitsOf('ab', 9), 2);
});

test('line ends of two characters count as two', () => {
  assert.deepEqual(draftRows('ab\r\ncd', 5, 2), [
    { settled: 'ab', undecided: '' },
    { settled: 'c', undecided: 'd' },
  ]);
});

test('lines of the selection that the draft does not reach are empty', () => {
  assert.deepEqual(draftRows('ab', 0, 3), [
    { settled: '', undecided: 'ab' },
    { settled: '', undecided: '' },
    { settled: '', undecided: '' },
  ]);
});

test('lines that have no line of the selection go on behind the last one', () => {
  assert.deepEqual(draftRows('a\n  b\n  c', 100, 1), [{ settled: 'a ⏎ b ⏎ c', undecided: '' }]);
  assert.deepEqual(draftRows('a\n  b\n  c', 5, 1), [{ settled: 'a ⏎ b', undecided: ' ⏎ c' }]);
  assert.deepEqual(draftRows('a\nb', 0, 1), [{ settled: '', undecided: 'a ⏎ b' }]);
});

test('an empty draft has a row for every line', () => {
  assert.deepEqual(draftRows('', 0, 2), [
    { settled: '', undecided: '' },
    { settled: '', undecided: '' },
  ]);
});

test('a row has an end, however long the line', () => {
  const [row] = draftRows('x'.repeat(10_000), 5_000, 1);
  assert.ok(row && row.settled.length + row.undecided.length <= 300);
});

test('every code point of a short draft is shown, settled first', () => {
  const text = 'def f():\n    return 🙂\n';
  for (let settled = 0; settled <= [...new Intl.Segmenter().segment(text)].length; settled++) {
    const rows = draftRows(text, settled, 3);
    assert.equal(rows.map((row) => row.settled + row.undecided).join('\n'), text);
    const open = rows.findIndex((row) => row.undecided);
    assert.ok(open < 0 || rows.slice(open + 1).every((row) => !row.settled));
  }
});

test('what is shown keeps its blanks and its tabs', () => {
  assert.equal(shownText('\ta b', 2), '\u00a0\u00a0a\u00a0b');
});
