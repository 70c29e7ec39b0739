--- Where somebody types.

local M = {}

---@return integer row
---@return integer col
---@return string line
function M.at()
  local at = vim.api.nvim_win_get_cursor(0)
  return at[1] - 1, at[2], vim.api.nvim_get_current_line()
end

--- The place and the text it is in, as something to compare.
---@param buf integer
---@return string
function M.place(buf)
  local row, col = M.at()
  return ("%d:%d:%d"):format(vim.api.nvim_buf_get_changedtick(buf), row, col)
end

---@return boolean
function M.is_inserting()
  return vim.api.nvim_get_mode().mode:sub(1, 1) == "i"
end

return M
