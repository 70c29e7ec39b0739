--- Words to a person: never a window, never twice the same in a row.

local M = {}

local last ---@type string?

---@param text string
---@param level? integer of `vim.log.levels`, INFO by default
function M.tell(text, level)
  vim.notify("Lacuna: " .. text, level or vim.log.levels.INFO)
end

---@type table<lsp.MessageType, integer>
local LEVELS = { vim.log.levels.ERROR, vim.log.levels.WARN, vim.log.levels.INFO }

--- What the server has to say to a person; it says each thing once, with what to do about it.
---@param message lsp.ShowMessageParams
function M.pass_on(message)
  vim.notify(message.message, LEVELS[message.type] or vim.log.levels.DEBUG)
end

--- Tell what happens again and again only when it is news.
---@param text string
---@param level? integer WARN by default
function M.tell_once(text, level)
  if text ~= last then
    last = text
    M.tell(text, level or vim.log.levels.WARN)
  end
end

--- What was told once is news again.
function M.forget()
  last = nil
end

return M
