--- Words to a person: never a window, never twice the same in a row.

local M = {}

local last ---@type string?

---@type table<integer, string>
local HIGHLIGHTS = { [vim.log.levels.WARN] = "WarningMsg", [vim.log.levels.ERROR] = "ErrorMsg" }

--- Whether messages go to the command line, where a long one stops the editor until Enter is pressed.
---@return boolean
local function is_on_command_line()
  local source = debug.getinfo(vim.notify, "S").source
  -- Neovim's own is from a file without a folder in 0.11, and of 0.12 nobody is told where it is from.
  return source:match("^@vim/_[%w_/]*editor%.lua$") ~= nil or source:match("^=?%?$") ~= nil
end

--- What fits of a line of the screen.
---@param line string
---@param width integer screen columns
---@return string
local function fitting(line, width)
  line = vim.fn.strcharpart(line, 0, width, true)
  while vim.api.nvim_strwidth(line) > width do
    line = vim.fn.strcharpart(line, 0, vim.fn.strcharlen(line) - 1, true)
  end
  return line
end

--- A text in lines that fit, in their order.
---@param text string
---@param width integer screen columns
---@return string[]
local function in_lines(text, width)
  local lines = {} ---@type string[]
  for _, line in ipairs(vim.split(text, "\r?\n")) do
    repeat
      local piece = fitting(line, width)
      lines[#lines + 1] = piece
      line = line:sub(#piece + 1)
    until line == "" or piece == ""
  end
  return lines
end

---@param text string
---@param level integer
local function put(text, level)
  local width = math.max(vim.o.columns - 12, 12)
  local lines = is_on_command_line() and in_lines(text, width) or {}
  if #lines < 2 then
    vim.notify(text, level)
    return
  end
  -- Only what is shown is kept in `:messages`: line by line, each taken off the screen again, so that nothing prompts.
  for _, line in ipairs(lines) do
    vim.api.nvim_echo({ { line, HIGHLIGHTS[level] } }, true, {})
    vim.cmd.redraw()
  end
  vim.api.nvim_echo({ { fitting(lines[1], width - 1) .. "…", HIGHLIGHTS[level] } }, false, {})
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
