// Formats Lua files by stylua, of which the npm registry has the library but no command that comes without a download.
// node .ci/stylua.cjs [--write] FOLDER...   Exit status 1 where a file is not formatted, and without --write changed none.
// Options: those of a stylua.toml in the first folder; only the names used here are known.
"use strict";
const fs = require("node:fs");
const path = require("node:path");
const stylua = require("@johnnymorganz/stylua");

const arguments_ = process.argv.slice(2);
const writes = arguments_.includes("--write");
const folders = arguments_.filter((argument) => !argument.startsWith("--"));

function config(folder) {
  const text = fs.readFileSync(path.join(folder, "stylua.toml"), "utf8");
  const value = (name) => {
    const found = text.match(new RegExp(`^${name} = "?([^"\\n]+)"?$`, "m"));
    if (!found) throw new Error(`stylua.toml: ${name} is missing`);
    return found[1];
  };
  const made = stylua.Config.new();
  made.column_width = Number(value("column_width"));
  made.indent_width = Number(value("indent_width"));
  made.indent_type = stylua.IndentType[value("indent_type")];
  made.quote_style = stylua.QuoteStyle[value("quote_style")];
  made.line_endings = stylua.LineEndings[value("line_endings")];
  made.syntax = stylua.LuaVersion[value("syntax")];
  return made;
}

function* files(folder) {
  for (const entry of fs.readdirSync(folder, { withFileTypes: true })) {
    const file = path.join(folder, entry.name);
    if (entry.isDirectory()) yield* files(file);
    else if (entry.name.endsWith(".lua")) yield file;
  }
}

let unformatted = 0;
for (const folder of folders) {
  for (const file of files(folder)) {
    const text = fs.readFileSync(file, "utf8");
    const wanted = stylua.formatCode(text, config(folders[0]), undefined, stylua.OutputVerification.Full);
    if (wanted === text) continue;
    unformatted += 1;
    console.error(`${writes ? "formatted" : "not formatted"}: ${file}`);
    if (writes) fs.writeFileSync(file, wanted);
  }
}
process.exit(unformatted && !writes ? 1 : 0);
