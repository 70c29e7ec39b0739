import assert from 'node:assert/strict';
import { test } from 'node:test';
import { chooseSession } from '../src/core/chooseSession';
import { RewriteSession } from '../src/core/rewriteSession';

const range = (a: number, b: number, c: number, d: number) => ({
  start: { line: a, character: b },
  end: { line: c, character: d },
});
const answer = (version: number, ...hunks: [ReturnType<typeof range>, string][]) => ({
  version,
  range: range(2, 0, 5, 0),
  hunks: hunks.map(([where, newText]) => ({ range: where, newText })),
});

function session(): RewriteSession {
  const made = new RewriteSession(1, 'file:///a.py', range(2, 0, 5, 0), 'first');
  made.ask();
  return made;
}

test('an answer about an older version finds its place in the text of now', () => {
  const one = session();
  one.follow(8, [{ range: range(0, 0, 0, 0), text: 'above\n' }]);
  one.follow(9, [{ range: range(0, 0, 0, 0), text: 'again\n' }]);
  assert.equal(one.receive(answer(8, [range(4, 0, 4, 3), 'new'])), true);
  assert.deepEqual(one.hunks, [{ id: 0, range: range(5, 0, 5, 3), newText: 'new' }]);
  assert.deepEqual(one.range, range(4, 0, 7, 0));
});

test('a hunk whose text was changed before the answer came is left out, and counted', () => {
  const one = session();
  one.follow(8, [{ range: range(3, 1, 3, 1), text: 'x' }]);
  assert.equal(one.receive(answer(7, [range(3, 0, 3, 3), 'a'], [range(4, 0, 4, 1), 'b'])), true);
  assert.deepEqual(
    one.hunks.map((hunk) => hunk.newText),
    ['b'],
  );
  assert.equal(one.lost, 1);
});

test('an answer without hunks closes', () => {
  const one = session();
  assert.equal(one.receive(answer(1)), false);
  assert.equal(one.phase, 'closed');
});

test('hunks that are accepted move those below, and the range grows with them', () => {
  const one = session();
  one.receive(answer(1, [range(2, 0, 2, 3), 'a'], [range(5, 0, 5, 0), 'end\n']));
  assert.deepEqual(
    one.take([0]).map((hunk) => hunk.newText),
    ['a'],
  );
  one.follow(2, [{ range: range(2, 0, 2, 3), text: 'a\nb\n' }], true);
  assert.deepEqual(
    one.hunks.map((hunk) => hunk.range),
    [range(7, 0, 7, 0)],
  );
  one.take([1]);
  one.follow(3, [{ range: range(7, 0, 7, 0), text: 'end\n' }], true);
  assert.deepEqual(one.range, range(2, 0, 8, 0));
  assert.equal(one.phase, 'closed');
});

test('when somebody types over the last hunk, there is nothing left to decide', () => {
  const one = session();
  one.receive(answer(1, [range(3, 0, 3, 3), 'a']));
  one.follow(2, [{ range: range(3, 1, 3, 2), text: '' }]);
  assert.equal(one.phase, 'closed');
});

test('hunks that could not be applied are there again, in order', () => {
  const one = session();
  one.receive(answer(1, [range(2, 0, 2, 1), 'a'], [range(3, 0, 3, 1), 'b'], [range(4, 0, 4, 1), 'c']));
  const taken = one.take([1]);
  one.putBack(taken);
  assert.deepEqual(
    one.hunks.map((hunk) => hunk.id),
    [0, 1, 2],
  );
});

test('asking again forgets what the last answer said, and keeps the instructions', () => {
  const one = session();
  one.receive(answer(1, [range(2, 0, 2, 1), 'a']));
  one.instructions.push('second');
  assert.equal(one.ask(), 2);
  assert.equal(one.phase, 'running');
  assert.deepEqual(one.hunks, []);
  assert.equal(one.instruction, 'first\nsecond');
});

test('the rewrite around the cursor is meant, else the nearest', () => {
  const sessions = [
    { id: 1, range: range(2, 0, 4, 0) },
    { id: 2, range: range(10, 0, 12, 0) },
  ];
  const at = (line: number) => chooseSession(sessions, { line, character: 0 })?.id;
  assert.deepEqual([at(0), at(3), at(8), at(99)], [1, 1, 2, 2]);
  const none: typeof sessions = [];
  assert.equal(chooseSession(none, { line: 0, character: 0 }), undefined);
});
