--- What a person chose in `vim.g.lacuna`: read when it is needed, so that a change holds at once.
--- The server's own settings are no options: they stand in `vim.lsp.config("lacuna", { settings = { lacuna = … } })`.

---@class lacuna.Keys
---@field accept string|false
---@field accept_always string|false
---@field accept_word string|false
---@field accept_line string|false
---@field next string|false
---@field previous string|false
---@field dismiss string|false
---@field rewrite string|false
---@field accept_all string|false
---@field accept_hunk string|false
---@field reject_hunk string|false
---@field next_hunk string|false
---@field retry string|false
---@field refine string|false
---@field cancel string|false
---@field fill_holes string|false
---@field fill_selection string|false

---@class lacuna.Options
---@field enable boolean false: no server is started by itself
---@field python? string an interpreter that has Lacuna installed
---@field cmd? string[] the whole command of the server, instead of looking for one
---@field model? string name or path of a model
---@field ghost_text boolean
---@field builtin_ghost_text boolean|"auto" whether `vim.lsp.inline_completion` shows it, where Neovim has that
---@field keys lacuna.Keys|false

local M = {}

---@type lacuna.Options
M.defaults = {
  enable = true,
  ghost_text = true,
  builtin_ghost_text = "auto",
  keys = {
    accept = "<Tab>",
    accept_always = "<M-a>",
    accept_word = "<M-Right>",
    accept_line = "<M-Down>",
    next = "<M-]>",
    previous = "<M-[>",
    dismiss = "<C-]>",
    rewrite = "<M-r>",
    accept_all = "gla",
    accept_hunk = "glh",
    reject_hunk = "glx",
    next_hunk = "gln",
    retry = "gls",
    refine = "gli",
    cancel = "glc",
    fill_holes = "glf",
    fill_selection = "glf",
  },
}

local TYPES = {
  enable = "boolean",
  python = "string",
  cmd = "table",
  model = "string",
  ghost_text = "boolean",
  builtin_ghost_text = { "boolean", "string" },
  keys = { "table", "boolean" },
}

---@param name string
---@param value any
---@return string? problem
local function problem_of(name, value)
  local wanted = TYPES[name]
  if not wanted then
    return ("vim.g.lacuna.%s: there is no such option"):format(name)
  end
  local kinds = type(wanted) == "table" and wanted or { wanted }
  if not vim.tbl_contains(kinds, type(value)) then
    return ("vim.g.lacuna.%s: must be a %s, not a %s"):format(name, table.concat(kinds, " or a "), type(value))
  end
  if name == "keys" and type(value) == "table" then
    for key in pairs(value) do
      if M.defaults.keys[key] == nil then
        return ("vim.g.lacuna.keys.%s: there is no such key"):format(key)
      end
    end
  end
end

--- What is wrong with `vim.g.lacuna`, in words; what is wrong counts as not said.
---@return string[]
function M.problems()
  local found = {}
  local given = vim.g.lacuna
  if given ~= nil and type(given) ~= "table" then
    return { "vim.g.lacuna: must be a table" }
  end
  for name, value in vim.spairs(given or {}) do
    found[#found + 1] = problem_of(name, value)
  end
  return found
end

---@return lacuna.Options
function M.get()
  local given = type(vim.g.lacuna) == "table" and vim.g.lacuna or {}
  local sound = {}
  for name, value in pairs(given) do
    if not problem_of(name, value) then
      sound[name] = value
    end
  end
  -- `keys = true` says what is so anyway.
  if sound.keys == true then
    sound.keys = nil
  end
  return vim.tbl_deep_extend("force", M.defaults, sound)
end

return M
