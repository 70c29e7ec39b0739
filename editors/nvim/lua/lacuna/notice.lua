--- Words to a person: never a window, never twice the same in a row.

local M = {}

local last ---@type string?

---@type table<integer, string>
local HIGHLIGHTS = { [vim.log.levels.WARN] = "WarningMsg", [vim.log.levels.ERROR] = "ErrorMsg" }

--- Whether messages go to the command line, where a long one stops the editor until Enter is pressed.
---@return boolean
local function is_on_command_line()
  return debug.getinfo(vim.notify, "S").source:match("vim/_[%w_/]*editor%.lua$") ~= nil
end

--- What fits of a text; the whole of it is in `:messages`.
---@param text string
---@param width integer screen columns
---@return string
local function shortened(text, width)
  local line = text:match("^[^\r\n]*")
  if line == text and vim.api.nvim_strwidth(line) <= width then
    return text
  end
  while vim.api.nvim_strwidth(line) > math.max(width - 1, 1) do
    line = vim.fn.strcharpart(line, 0, vim.fn.strchars(line) - 1)
  end
  return line .. "…"
end

---@param text string
---@param level integer
local function put(text, level)
  local short = is_on_command_line() and shortened(text, vim.o.columns - 12) or text
  if short == text then
    vim.notify(text, level)
    return
  end
  -- Only what is shown is kept in `:messages`; a redraw takes the whole and the prompt behind it off the screen again.
  local more = vim.o.more
  vim.o.more = false
  vim.api.nvim_echo({ { text, HIGHLIGHTS[level] } }, true, {})
  vim.cmd.redraw()
  vim.o.more = more
  vim.api.nvim_echo({ { short, HIGHLIGHTS[level] } }, true, {})
end

---@param text string
---@param level? integer of `vim.log.levels`, INFO by default
function M.tell(text, level)
  put("Lacuna: " .. text, level or vim.log.levels.INFO)
end

--- What a person asked to read: all of it.
---@param text string
function M.answer(text)
  vim.notify("Lacuna: " .. text, vim.log.levels.INFO)
end

---@type table<lsp.MessageType, integer>
local LEVELS = { vim.log.levels.ERROR, vim.log.levels.WARN, vim.log.levels.INFO }

--- What the server has to say to a person; it says each thing once, with what to do about it.
---@param message lsp.ShowMessageParams
function M.pass_on(message)
  put(message.message, LEVELS[message.type] or vim.log.levels.DEBUG)
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
