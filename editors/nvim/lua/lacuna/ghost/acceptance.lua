--- Puts an offer into the buffer, all that is left of it or a part. Knows nothing of what is shown.

local clients = require("lacuna.clients")
local cursor = require("lacuna.ghost.cursor")
local offers = require("lacuna.ghost.offer")

---@alias lacuna.ghost.Part "all"|"word"|"line"

local M = {}

---@param buf integer
---@param stop integer byte column up to which the cursor's line is replaced
---@param text string
local function insert(buf, stop, text)
  local row, col = cursor.at()
  local lines = vim.split(text, "\n", { plain = true })
  vim.api.nvim_buf_set_text(buf, row, col, row, stop, lines)
  local last = #lines[#lines] + (#lines == 1 and col or 0)
  vim.api.nvim_win_set_cursor(0, { row + #lines, last })
end

--- The piece of an offer that is meant; nil for all of it.
---@param left lacuna.ghost.Left
---@param part lacuna.ghost.Part
---@return string?
local function piece_of(left, part)
  local piece = part == "word" and offers.first_word(left.text) or part == "line" and offers.first_line(left.text)
  if piece and piece ~= "" and piece ~= left.text then
    return piece
  end
end

--- Put a part in at the cursor.
---@param buf integer
---@param part lacuna.ghost.Part
---@param offer lacuna.ghost.Offer
---@param left lacuna.ghost.Left
---@return lacuna.ghost.Offer? rest what is offered behind it; nil where nothing is left
function M.put_in(buf, part, offer, left)
  local _, col = cursor.at()
  local piece = piece_of(left, part)
  if not piece then
    insert(buf, col + #left.rest, left.text)
    local client = clients.of(buf)
    if client and offer.command then
      client:exec_cmd(offer.command, { bufnr = buf }, function() end)
    end
    return nil
  end
  local remaining = left.text:sub(#piece + 1)
  local keeps_rest = left.rest ~= "" and offers.around({ text = remaining, rest = left.rest }) ~= nil
  insert(buf, keeps_rest and col or col + #left.rest, piece)
  local row, new_col = cursor.at()
  return {
    row = row,
    col = new_col,
    text = remaining,
    rest = keeps_rest and left.rest or "",
    behind = offer.behind,
    command = offer.command,
  }
end

return M
