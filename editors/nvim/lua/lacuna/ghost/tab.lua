--- What Tab does: a menu that is open has it first, leading white space is indented, ghost text is accepted; and where
--- there is nothing to accept the mapping runs that was there before.

local ghost = require("lacuna.ghost")
local menus = require("lacuna.ghost.menus")

local M = {}

--- Stands for what the key did before.
local BEFORE = "<Plug>(lacuna-before-%s)"

---@return boolean
local function is_in_leading_blanks()
  local col = vim.api.nvim_win_get_cursor(0)[2]
  return vim.api.nvim_get_current_line():sub(1, col):match("^%s*$") ~= nil
end

--- Keep what `key` does in insert mode now under another name, and return that.
---@param key string
---@return string
local function kept(key)
  local name = BEFORE:format(key:gsub("[<>]", ""))
  local mapping = vim.fn.maparg(key, "i", false, true)
  if vim.tbl_isempty(mapping) or mapping.buffer == 1 then
    vim.keymap.set("i", name, key)
    return name
  end
  mapping.lhs, mapping.lhsraw = name, vim.api.nvim_replace_termcodes(name, true, true, true)
  mapping.lhsrawalt = nil
  vim.fn.mapset("i", false, mapping)
  return name
end

--- Map a key of insert mode to one that accepts, and otherwise does what it did.
---@param key string
---@param accept string the `<Plug>` mapping that accepts
---@param opts { indents: boolean } whether the key is the one that indents
function M.map(key, accept, opts)
  local before = kept(key)
  vim.keymap.set("i", key, function()
    if menus.is_open() or not ghost.is_shown() or (opts.indents and is_in_leading_blanks()) then
      return before
    end
    return accept
  end, { expr = true, remap = true, desc = "Lacuna: accept, or what the key does" })
end

return M
