--- `<Plug>` mappings for everything, and default keys for them. A key that means something already is left alone, but
--- for Tab and the dismissing key, which go on doing what they did.

local ghost = require("lacuna.ghost")
local options = require("lacuna.options")
local selection = require("lacuna.selection")

local M = {}

---@param name string
---@return string
local function plug(name)
  return ("<Plug>(lacuna-%s)"):format(name:gsub("_", "-"))
end

---@class lacuna.Mapping
---@field modes string[]
---@field run fun()
---@field desc string

--- Undo ends in front of what is accepted and behind it.
---@param part "all"|"word"|"line"
---@return string
local function accepting(part)
  return ("<C-g>u<Cmd>lua require('lacuna.ghost').accept('%s')<CR><C-g>u"):format(part)
end

---@type table<string, string|fun()>
local INSERT = {
  accept = accepting("all"),
  accept_word = accepting("word"),
  accept_line = accepting("line"),
  next = function()
    ghost.choose(1)
  end,
  previous = function()
    ghost.choose(-1)
  end,
  dismiss = function()
    ghost.dismiss()
  end,
}

---@type table<string, lacuna.Mapping>
local NORMAL = {
  rewrite = {
    modes = { "n", "x" },
    desc = "rewrite the selection, or the line",
    run = function()
      require("lacuna.rewrite").start(selection.take())
    end,
  },
  accept_all = {
    modes = { "n" },
    desc = "accept the rewrite",
    run = function()
      require("lacuna.rewrite").accept_all()
    end,
  },
  accept_hunk = {
    modes = { "n" },
    desc = "accept this change",
    run = function()
      require("lacuna.rewrite").judge(true)
    end,
  },
  reject_hunk = {
    modes = { "n" },
    desc = "reject this change",
    run = function()
      require("lacuna.rewrite").judge(false)
    end,
  },
  next_hunk = {
    modes = { "n" },
    desc = "go to the next change",
    run = function()
      require("lacuna.rewrite").next_hunk()
    end,
  },
  retry = {
    modes = { "n" },
    desc = "another text for the same instruction",
    run = function()
      require("lacuna.rewrite").retry()
    end,
  },
  refine = {
    modes = { "n" },
    desc = "refine the rewrite",
    run = function()
      require("lacuna.rewrite").refine()
    end,
  },
  cancel = {
    modes = { "n" },
    desc = "cancel what runs, or take the diff away",
    run = function()
      require("lacuna.rewrite").cancel()
    end,
  },
  fill_holes = {
    modes = { "n" },
    desc = "fill the holes of the buffer",
    run = function()
      require("lacuna.actions").fill_holes()
    end,
  },
  fill_selection = {
    modes = { "x" },
    desc = "fill the selection, or the holes in it",
    run = function()
      require("lacuna.actions").fill_selection(selection.take())
    end,
  },
}

local function define_plugs()
  for name, run in pairs(INSERT) do
    vim.keymap.set("i", plug(name), run, { desc = "Lacuna: " .. name:gsub("_", " ") })
  end
  for name, mapping in pairs(NORMAL) do
    vim.keymap.set(mapping.modes, plug(name), mapping.run, { desc = "Lacuna: " .. mapping.desc })
  end
end

--- Map a key unless it means something, or the person has another one for it.
---@param mode string
---@param key string|false|nil
---@param name string
---@param desc string
local function map(mode, key, name, desc)
  if not key or vim.fn.maparg(key, mode) ~= "" or vim.fn.hasmapto(plug(name), mode) == 1 then
    return
  end
  vim.keymap.set(mode, key, plug(name), { remap = true, desc = "Lacuna: " .. desc })
end

---@param keys lacuna.Keys
local function map_insert(keys)
  local tab = require("lacuna.ghost.tab")
  if keys.accept and vim.fn.hasmapto(plug("accept"), "i") == 0 then
    tab.map(keys.accept, plug("accept"), { indents = keys.accept:lower() == "<tab>" })
  end
  if keys.dismiss and vim.fn.hasmapto(plug("dismiss"), "i") == 0 then
    tab.map(keys.dismiss, plug("dismiss"), { indents = false })
  end
  if keys.accept_always and vim.fn.maparg(keys.accept_always, "i") == "" then
    vim.keymap.set("i", keys.accept_always, plug("accept"), { remap = true, desc = "Lacuna: accept" })
  end
  for _, name in ipairs({ "accept_word", "accept_line", "next", "previous" }) do
    map("i", keys[name], name, (name:gsub("_", " ")))
  end
end

--- Define everything. Called once, when the person's own mappings are there.
function M.define()
  define_plugs()
  local keys = options.get().keys
  if not keys then
    return
  end
  map_insert(keys)
  for name, mapping in vim.spairs(NORMAL) do
    for _, mode in ipairs(mapping.modes) do
      map(mode, keys[name], name, mapping.desc)
    end
  end
end

return M
