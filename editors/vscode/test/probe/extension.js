// Runs a function that a test sends, inside the extension host, and answers with what it returns (JSON both ways).
// One socket for each window, named after its folder: <LACUNA_PROBE_DIR>/<folder name>.sock
'use strict';
const { createServer } = require('node:http');
const { rmSync } = require('node:fs');
const path = require('node:path');
const vscode = require('vscode');

async function evaluate(source, argument) {
  const run = new Function(`return (${source})`)();
  return (await run(vscode, argument)) ?? null;
}

function answer(request, response) {
  const chunks = [];
  request.on('data', (chunk) => chunks.push(chunk));
  request.on('end', async () => {
    let reply;
    try {
      const { source, argument } = JSON.parse(Buffer.concat(chunks).toString('utf8'));
      reply = { value: await evaluate(source, argument) };
    } catch (error) {
      reply = { error: String(error?.stack ?? error) };
    }
    response.end(JSON.stringify(reply));
  });
}

exports.activate = (context) => {
  const folder = vscode.workspace.workspaceFolders?.[0]?.uri.fsPath ?? 'none';
  const socket = path.join(process.env.LACUNA_PROBE_DIR, `${path.basename(folder)}.sock`);
  rmSync(socket, { force: true });
  const server = createServer(answer).listen(socket);
  context.subscriptions.push({ dispose: () => server.close() });
};
