import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type Change,
  type Position,
  type Range,
  compare,
  followRange,
  moveRange,
  shareLines,
  splitLines,
} from '../src/core/positions';

const at = (line: number, character: number): Position => ({ line, character });
const span = (a: number, b: number, c: number, d: number): Range => ({ start: at(a, b), end: at(c, d) });
const change = (range: Range, text: string): Change => ({ range, text });

/** What an editor does, without sharing code with what is tested. */
function applied(text: string, { range, text: inserted }: Change): string {
  return text.slice(0, offset(text, range.start)) + inserted + text.slice(offset(text, range.end));
}

function offset(text: string, position: Position): number {
  let start = 0;
  for (let line = 0; line < position.line; line++) {
    start = text.indexOf('\n', start) + 1;
  }
  return start + position.character;
}

function slice(text: string, range: Range): string {
  return text.slice(offset(text, range.start), offset(text, range.end));
}

/** A small generator of its own, so that a failure can be repeated by its seed. */
function random(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state * 1103515245 + 12345) & 0x7fffffff;
    return (state >> 8) % below;
  };
}

function randomRange(text: string, below: (n: number) => number): Range {
  const lines = splitLines(text);
  const place = () => {
    const line = below(lines.length);
    return at(line, below((lines[line] ?? '').length + 1));
  };
  const [a, b] = [place(), place()];
  return compare(a, b) <= 0 ? { start: a, end: b } : { start: b, end: a };
}

test('a change on lines above moves a range by lines', () => {
  assert.deepEqual(moveRange(span(4, 2, 5, 1), change(span(0, 0, 0, 0), 'a\nb\n')), span(6, 2, 7, 1));
  assert.deepEqual(moveRange(span(4, 2, 5, 1), change(span(0, 0, 2, 0), '')), span(2, 2, 3, 1));
});

test('a change before it on its own line moves only what stands on that line', () => {
  assert.deepEqual(moveRange(span(1, 4, 2, 3), change(span(1, 0, 1, 2), 'xyz')), span(1, 5, 2, 3));
  assert.deepEqual(moveRange(span(1, 4, 1, 6), change(span(1, 0, 1, 2), 'p\nq')), span(2, 3, 2, 5));
});

test('a change inside a range, or across its edge, loses it', () => {
  const range = span(1, 2, 3, 4);
  assert.equal(moveRange(range, change(span(2, 0, 2, 0), 'x')), undefined);
  assert.equal(moveRange(range, change(span(0, 0, 1, 3), '')), undefined);
  assert.equal(moveRange(range, change(span(3, 3, 4, 0), '')), undefined);
});

test('a change behind a range, also right behind it, leaves it alone', () => {
  const range = span(1, 2, 3, 4);
  assert.equal(moveRange(range, change(span(3, 4, 3, 4), 'x\ny')), range);
});

test('a range that no change touched still holds its text, whatever came before and behind', () => {
  let kept = 0;
  for (let seed = 1; seed <= 3000; seed++) {
    const below = random(seed);
    const text = 'ab\n\ncdef\ng h\n  ij';
    const range = randomRange(text, below);
    const edit = change(randomRange(text, below), ['', 'x', 'x\ny', '\n', '\n\nzz'][below(5)] ?? '');
    const moved = moveRange(range, edit);
    if (moved) {
      kept += 1;
      assert.equal(slice(applied(text, edit), moved), slice(text, range), `seed ${seed}`);
    }
  }
  assert.ok(kept > 300, `only ${kept} ranges were kept`);
});

test('a followed range keeps the text behind and before it out, and takes what is written inside', () => {
  assert.deepEqual(followRange(span(1, 2, 1, 6), change(span(1, 4, 1, 4), 'x\ny')), span(1, 2, 2, 3));
  assert.deepEqual(followRange(span(1, 2, 1, 6), change(span(1, 6, 1, 6), 'x')), span(1, 2, 1, 6));
  assert.deepEqual(followRange(span(1, 2, 1, 6), change(span(1, 2, 1, 2), 'x')), span(1, 3, 1, 7));
});

test('a followed range that grows takes what is written at its edges', () => {
  assert.deepEqual(followRange(span(1, 2, 1, 6), change(span(1, 6, 1, 6), 'x'), true), span(1, 2, 1, 7));
  assert.deepEqual(followRange(span(1, 2, 1, 6), change(span(1, 2, 1, 2), 'x'), true), span(1, 2, 1, 7));
  assert.deepEqual(followRange(span(1, 2, 1, 6), change(span(1, 2, 1, 6), 'new'), true), span(1, 2, 1, 5));
});

test('a followed range stays in order under any change', () => {
  for (let seed = 1; seed <= 3000; seed++) {
    const below = random(seed);
    const text = 'ab\n\ncdef\ng h\n  ij';
    const range = randomRange(text, below);
    const edit = change(randomRange(text, below), ['', 'x', 'x\ny', '\n'][below(4)] ?? '');
    const followed = followRange(range, edit, below(2) === 1);
    assert.ok(compare(followed.start, followed.end) <= 0, `seed ${seed}`);
    const after = applied(text, edit);
    const last = splitLines(after).length - 1;
    assert.ok(followed.end.line <= last, `seed ${seed}`);
    assert.ok(followed.end.character <= (splitLines(after)[followed.end.line] ?? '').length, `seed ${seed}`);
  }
});

test('ranges on one line share it, neighbours share none', () => {
  assert.equal(shareLines(span(1, 0, 2, 3), span(2, 5, 4, 0)), true);
  assert.equal(shareLines(span(1, 0, 2, 3), span(3, 0, 4, 0)), false);
  assert.equal(shareLines(span(3, 0, 4, 0), span(1, 0, 2, 3)), false);
  assert.equal(shareLines(span(1, 0, 3, 0), span(3, 0, 4, 0)), false);
  assert.equal(shareLines(span(3, 0, 3, 0), span(3, 0, 4, 0)), true);
});
