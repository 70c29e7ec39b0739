--- Whether a completion menu is open: Neovim's own, or that of a plug-in that may or may not be there.

local M = {}

---@return boolean
local function blink_is_open()
  local blink = package.loaded["blink.cmp"]
  return type(blink) == "table" and type(blink.is_menu_visible) == "function" and blink.is_menu_visible() == true
end

---@return boolean
local function cmp_is_open()
  local cmp = package.loaded["cmp"]
  if type(cmp) ~= "table" or type(cmp.core) ~= "table" or type(cmp.core.view) ~= "table" then
    return false
  end
  -- `cmp.visible()` is also true of its own ghost text.
  local view = cmp.core.view
  return type(view.visible) == "function" and view:visible() == true
end

---@return boolean
function M.is_open()
  if vim.fn.pumvisible() == 1 then
    return true
  end
  -- What belongs to somebody else may have changed its shape.
  local is_known, is_open = pcall(function()
    return blink_is_open() or cmp_is_open()
  end)
  return is_known and is_open
end

return M
