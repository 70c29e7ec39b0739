/** From the core's plain positions to the editor's. */

import * as vscode from 'vscode';
import type { Position, Range } from '../core/positions';

export function toPosition({ line, character }: Position): vscode.Position {
  return new vscode.Position(line, character);
}

export function toRange({ start, end }: Range): vscode.Range {
  return new vscode.Range(toPosition(start), toPosition(end));
}
