--- The line that says which keys do what to a rewrite.

local options = require("lacuna.options")

local M = {}

--- What the keys do, in a word each, so that a line holds them all.
local WORDS = {
  accept_all = "all",
  accept_hunk = "this",
  reject_hunk = "not this",
  retry = "another",
  refine = "refine",
  cancel = "cancel",
}

--- Keys and what they do; those that a person turned off are left out.
---@param names string[]
---@return string
local function of(names)
  local keys = options.get().keys
  local parts = {}
  for _, name in ipairs(names) do
    local key = keys and keys[name]
    if key then
      parts[#parts + 1] = ("%s %s"):format(key, WORDS[name])
    end
  end
  return #parts > 0 and "  " .. table.concat(parts, "  ") or ""
end

--- While something runs.
---@return string
function M.running()
  return of({ "cancel" })
end

--- While something waits for its verdict.
---@return string
function M.review()
  return of({ "accept_all", "accept_hunk", "reject_hunk", "retry", "refine", "cancel" })
end

return M
