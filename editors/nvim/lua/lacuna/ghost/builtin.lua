--- Ghost text that Neovim shows by itself (0.12 and newer), for who has enabled that: the keys are the same.
---
--- What it lacks is done here: a word or a line of it, line ends, and a check that the text still fits what was typed.

local offers = require("lacuna.ghost.offer")
local options = require("lacuna.options")

local M = {}

local NAMESPACE = "nvim.lsp.inline_completion"

--- Whether Neovim's own ghost text is on in a buffer.
---@param buf integer
---@return boolean
function M.is_on(buf)
  local builtin = vim.lsp.inline_completion
  return builtin ~= nil and options.get().builtin_ghost_text ~= false and builtin.is_enabled({ bufnr = buf })
end

--- Turn it on where the person's option says so.
---@param buf integer
function M.attached(buf)
  local builtin = vim.lsp.inline_completion
  if builtin and options.get().builtin_ghost_text == true then
    builtin.enable(true, { bufnr = buf })
  end
end

---@param buf integer
---@return boolean
function M.is_shown(buf)
  local namespace = vim.api.nvim_get_namespaces()[NAMESPACE]
  return namespace ~= nil and #vim.api.nvim_buf_get_extmarks(buf, namespace, 0, -1, { limit = 1 }) > 0
end

--- Put in what is shown, or a part of it.
---@param insert fun(offer: lacuna.ghost.Offer, left: lacuna.ghost.Left)
function M.accept(insert)
  vim.lsp.inline_completion.get({
    on_accept = function(item)
      local at = vim.api.nvim_win_get_cursor(0)
      local row, cursor, line = at[1] - 1, at[2], vim.api.nvim_get_current_line()
      local first, col, stop = row, cursor, cursor
      if item.range then
        local _
        first, col, _, stop = item.range:to_extmark()
      end
      local offer =
        offers.new(first, col, stop, cursor, line, { insertText = item.insert_text, command = item.command })
      local left = offers.left(offer, row, cursor, line)
      if left then
        insert(offer, left)
      end
    end,
  })
end

---@param step integer
function M.choose(step)
  vim.lsp.inline_completion.select({ count = step })
end

--- There is no call that hides it: off and on again does.
---@param buf integer
function M.dismiss(buf)
  vim.lsp.inline_completion.enable(false, { bufnr = buf })
  vim.lsp.inline_completion.enable(true, { bufnr = buf })
end

return M
