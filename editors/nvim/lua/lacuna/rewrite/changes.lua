--- A rewrite's hunks as changes of a buffer's lines. Rows and byte columns from 0; nothing here changes the buffer.

local positions = require("lacuna.positions")

---@class lacuna.rewrite.Change
---@field bounds lacuna.rewrite.Bounds
---@field text string[] what goes there

---@class lacuna.rewrite.LineDiff
---@field row integer the first line that goes, or the line the new ones stand in front of
---@field gone integer how many lines go
---@field come string[] the lines that come

local M = {}

--- A position of the server's answer in the buffer: the selection may have moved since it was asked about.
---@param buf integer
---@param position lsp.Position
---@param from lsp.Position where the answer says that the selection begins
---@param to lacuna.rewrite.Bounds where it begins now
---@param encoding string
---@return integer row
---@return integer col
local function moved(buf, position, from, to, encoding)
  local row = to.row + position.line - from.line
  local character = position.character
  if position.line == from.line then
    character = character - from.character + positions.to_lsp(buf, to.row, to.col, encoding).character
  end
  return positions.to_bytes(buf, { line = row, character = math.max(character, 0) }, encoding)
end

---@param buf integer
---@param result lacuna.RewriteResult
---@param to lacuna.rewrite.Bounds the selection as it stands now
---@param encoding string
---@return lacuna.rewrite.Change[]
local function each(buf, result, to, encoding)
  return vim.tbl_map(function(hunk)
    local row, col = moved(buf, hunk.range.start, result.range.start, to, encoding)
    local end_row, end_col = moved(buf, hunk.range["end"], result.range.start, to, encoding)
    local bounds = { row = row, col = col, end_row = end_row, end_col = end_col }
    return { bounds = bounds, text = positions.lines_of(hunk.newText) }
  end, result.hunks)
end

--- Two lists of lines, the second continuing the last line of the first.
---@param left string[]
---@param right string[]
---@return string[]
local function joined(left, right)
  local lines = vim.list_slice(left, 1, #left - 1)
  lines[#lines + 1] = left[#left] .. right[1]
  return vim.list_extend(lines, right, 2)
end

--- The changes of an answer; hunks that touch the same line are one change, since that is what a person can judge.
---@param buf integer
---@param result lacuna.RewriteResult
---@param to lacuna.rewrite.Bounds the selection as it stands now
---@param encoding string
---@return lacuna.rewrite.Change[]
function M.of(buf, result, to, encoding)
  local found = {}
  for _, change in ipairs(each(buf, result, to, encoding)) do
    local last = found[#found]
    local at = change.bounds
    if last and at.row <= last.bounds.end_row then
      local stop = last.bounds
      local between = vim.api.nvim_buf_get_text(buf, stop.end_row, stop.end_col, at.row, at.col, {})
      last.text = joined(joined(last.text, between), change.text)
      stop.end_row, stop.end_col = at.end_row, at.end_col
    else
      found[#found + 1] = change
    end
  end
  return found
end

--- The change in whole lines, without those that stay.
---@param old string[] the lines it touches
---@param change lacuna.rewrite.Change
---@return lacuna.rewrite.LineDiff
function M.in_lines(old, change)
  local at = change.bounds
  local new = joined(joined({ old[1]:sub(1, at.col) }, change.text), { old[#old]:sub(at.end_col + 1) })
  local head, tail = 0, 0
  local shorter = math.min(#old, #new)
  while head < shorter and old[head + 1] == new[head + 1] do
    head = head + 1
  end
  while tail < shorter - head and old[#old - tail] == new[#new - tail] do
    tail = tail + 1
  end
  return { row = at.row + head, gone = #old - head - tail, come = vim.list_slice(new, head + 1, #new - tail) }
end

--- Where a place stands once `change` has been made; one inside of what goes moves to the end of what comes.
---@param row integer
---@param col integer
---@param change lacuna.rewrite.Change
---@return integer row
---@return integer col
function M.shifted(row, col, change)
  local at, text = change.bounds, change.text
  if row < at.row or (row == at.row and col <= at.col) then
    return row, col
  end
  local new_row = at.row + #text - 1
  local new_col = #text[#text] + (#text == 1 and at.col or 0)
  if row > at.end_row then
    return row + new_row - at.end_row, col
  end
  return new_row, new_col + (row == at.end_row and math.max(col - at.end_col, 0) or 0)
end

return M
