--- Tabs in text that is only shown: virtual text has none, so they become blanks up to the next stop.

local M = {}

--- Screen columns of a text that begins in `column`.
---@param text string
---@param column integer
---@param tabstop integer
---@return integer
function M.width(text, column, tabstop)
  local at = column
  for piece, tab in text:gmatch("([^\t]*)(\t?)") do
    at = at + vim.api.nvim_strwidth(piece)
    if tab ~= "" then
      at = at + tabstop - at % tabstop
    end
  end
  return at - column
end

---@param text string
---@param column integer screen column the text begins in
---@param tabstop integer
---@return string
function M.expanded(text, column, tabstop)
  local at = column
  return (
    text:gsub("([^\t]*)(\t?)", function(piece, tab)
      at = at + vim.api.nvim_strwidth(piece)
      local blanks = tab ~= "" and tabstop - at % tabstop or 0
      at = at + blanks
      return piece .. (" "):rep(blanks)
    end)
  )
end

return M
