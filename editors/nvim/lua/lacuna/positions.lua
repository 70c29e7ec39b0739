--- Between LSP's positions, which count in the agreed unit, and Neovim's: rows and byte columns from 0.

local M = {}

---@param buf integer
---@param row integer
---@return string
local function line_at(buf, row)
  return vim.api.nvim_buf_get_lines(buf, row, row + 1, false)[1] or ""
end

--- Row and byte column; what lies outside of the text is moved to its border.
---@param buf integer
---@param position lsp.Position
---@param encoding string
---@return integer row
---@return integer col
function M.to_bytes(buf, position, encoding)
  local last = vim.api.nvim_buf_line_count(buf) - 1
  if position.line > last then
    return last, #line_at(buf, last)
  end
  local line = line_at(buf, position.line)
  return position.line, vim.str_byteindex(line, encoding, position.character, false)
end

---@param buf integer
---@param row integer
---@param col integer bytes
---@param encoding string
---@return lsp.Position
function M.to_lsp(buf, row, col, encoding)
  local line = line_at(buf, row)
  return { line = row, character = vim.str_utfindex(line, encoding, math.min(col, #line), false) }
end

--- The lines of a text from the server, whatever its line ends are.
---@param text string
---@return string[]
function M.lines_of(text)
  return vim.split((text:gsub("\r\n?", "\n")), "\n", { plain = true })
end

--- The byte index behind the first `count` code points of a text; all of it where it has fewer.
---@param text string
---@param count integer
---@return integer
function M.code_points(text, count)
  return vim.str_byteindex(text, "utf-32", count, false)
end

return M
