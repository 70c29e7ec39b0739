import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ErrorCodes, LSPErrorCodes, ResponseError } from 'vscode-languageserver-protocol';
import { Code, Refusal, messageOf, saidOf } from '../src/core/faults';

const t = (message: string) => message;
const toneOf = (fault: unknown) => saidOf(fault, t)?.tone;

test('the codes are those of the protocol', () => {
  assert.deepEqual(Code, {
    requestCancelled: LSPErrorCodes.RequestCancelled,
    contentModified: LSPErrorCodes.ContentModified,
    serverCancelled: LSPErrorCodes.ServerCancelled,
    connectionInactive: ErrorCodes.ConnectionInactive,
    pendingResponseRejected: ErrorCodes.PendingResponseRejected,
  });
});

test('who cancels is told nothing', () => {
  assert.equal(saidOf(new ResponseError(LSPErrorCodes.RequestCancelled, 'cancelled'), t), undefined);
  assert.equal(saidOf(new ResponseError(LSPErrorCodes.ServerCancelled, 'cancelled'), t), undefined);
});

test('what asking again may mend is a warning with words of its own', () => {
  for (const code of [
    LSPErrorCodes.ContentModified,
    ErrorCodes.PendingResponseRejected,
    ErrorCodes.ConnectionInactive,
  ]) {
    const said = saidOf(new ResponseError(code, 'raw words of the protocol'), t);
    assert.equal(said?.tone, 'warning');
    assert.match(said.message, /try again/i);
  }
  assert.deepEqual(saidOf(new Refusal('Not now.'), t), { tone: 'warning', message: 'Not now.' });
});

test('anything else is an error in the words that it came with', () => {
  assert.equal(toneOf(new ResponseError(ErrorCodes.InternalError, 'broken')), 'error');
  assert.equal(toneOf(new ResponseError(ErrorCodes.InvalidParams, 'wrong')), 'error');
  assert.deepEqual(saidOf(new Error('spawn ENOENT'), t), { tone: 'error', message: 'spawn ENOENT' });
  assert.deepEqual(saidOf('thrown text', t), { tone: 'error', message: 'thrown text' });
  assert.equal(messageOf(new Error('only this')), 'only this');
});
