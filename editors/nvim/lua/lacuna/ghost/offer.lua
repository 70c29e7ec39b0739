--- One suggestion at a cursor, and what is left of it while somebody types. Pure: knows lines, no buffers.
---
--- An offer stands for the text between `col` and what stands behind it in the line (`behind`). What is typed there is
--- a beginning of the offer's text, or the offer is void; of the replaced text, what stands right of the cursor is
--- `rest`: a bracket that the editor closed by itself, say, which the text holds once more.

---@class lacuna.ghost.Offer
---@field row integer
---@field col integer byte column where the offer begins
---@field text string line ends are "\n"
---@field rest string what of the replaced text stands right of the cursor
---@field behind string the line behind what is replaced
---@field command? lsp.Command

---@class lacuna.ghost.Left
---@field text string what is still to be inserted at the cursor, `rest` included
---@field rest string

local M = {}

---@param row integer
---@param col integer
---@param stop integer byte column where the replaced text ends
---@param cursor integer byte column of the cursor
---@param line string
---@param item lsp.InlineCompletionItem
---@return lacuna.ghost.Offer
function M.new(row, col, stop, cursor, line, item)
  local text = type(item.insertText) == "table" and item.insertText.value or item.insertText --[[@as string]]
  return {
    row = row,
    col = col,
    text = (text:gsub("\r\n?", "\n")),
    rest = line:sub(cursor + 1, stop),
    behind = line:sub(math.max(stop, cursor) + 1),
    command = item.command,
  }
end

--- What is left of an offer; nil once something else stands there, or nothing is left.
---@param offer lacuna.ghost.Offer
---@param row integer
---@param cursor integer
---@param line string
---@return lacuna.ghost.Left?
function M.left(offer, row, cursor, line)
  if row ~= offer.row or cursor < offer.col then
    return nil
  end
  if line:sub(cursor + 1) ~= offer.rest .. offer.behind then
    return nil
  end
  local typed = line:sub(offer.col + 1, cursor)
  if offer.text:sub(1, #typed) ~= typed then
    return nil
  end
  local text = offer.text:sub(#typed + 1)
  if text == offer.rest then
    return nil
  end
  return { text = text, rest = offer.rest }
end

--- The text in pieces around `rest`: what stands before it, and what behind; nil where the text does not hold it in
--- its first line, and so takes its place.
---@param left lacuna.ghost.Left
---@return string? before
---@return string? behind
function M.around(left)
  if left.rest == "" then
    return left.text, ""
  end
  local first = left.text:match("^[^\n]*")
  local at ---@type integer?
  local from = 1
  while true do
    local found = first:find(left.rest, from, true)
    if not found then
      break
    end
    at, from = found, found + 1
  end
  if at then
    return left.text:sub(1, at - 1), left.text:sub(at + #left.rest)
  end
end

--- The first word of a text, with the blanks in front of it; a run of signs counts as a word.
---@param text string
---@return string
function M.first_word(text)
  local blanks = text:match("^%s*")
  local behind = text:sub(#blanks + 1)
  -- Letters beyond ASCII are bytes from 128.
  local word = behind:match("^[%w_\128-\255]+") or behind:match("^[^%w_%s\128-\255]+") or ""
  return blanks .. word
end

--- The first line of a text; where that is empty, the next with its line end.
---@param text string
---@return string
function M.first_line(text)
  return text:match("^\n*[^\n]+") or text
end

return M
