--- Lacuna for Neovim. Nothing has to be called: options stand in `vim.g.lacuna`, the server's settings in
--- `vim.lsp.config("lacuna", …)`. What is here is for mappings and status lines of one's own.

local M = {}

--- Start what listens; `plugin/lacuna.lua` calls it once.
function M.start()
  require("lacuna.highlights").define()
  require("lacuna.commands").define()
  local group = vim.api.nvim_create_augroup("lacuna", {})
  require("lacuna.requests").listen(group)
  require("lacuna.ghost").listen(group)
  require("lacuna.rewrite").listen(group)
  require("lacuna.status").listen(group)
  vim.api.nvim_create_autocmd("ColorScheme", { group = group, callback = require("lacuna.highlights").define })
  vim.api.nvim_create_autocmd("LspAttach", {
    group = group,
    callback = function(event)
      local client = vim.lsp.get_client_by_id(event.data.client_id)
      if client and client.name == require("lacuna.clients").NAME then
        require("lacuna.pause").attached()
        require("lacuna.ghost.builtin").attached(event.buf)
      end
    end,
  })
  for _, problem in ipairs(require("lacuna.options").problems()) do
    require("lacuna.notice").tell(problem, vim.log.levels.WARN)
  end
  if require("lacuna.options").get().enable then
    vim.lsp.enable(require("lacuna.clients").NAME)
  end
end

--- Options in one call, for those who like it so: the same as setting `vim.g.lacuna` before Neovim has started.
---@param given? lacuna.Options
function M.setup(given)
  vim.g.lacuna = given
end

--- Put in the ghost text, or its first word or line.
---@param part? "all"|"word"|"line"
---@return boolean whether there was any
function M.accept(part)
  return require("lacuna.ghost").accept(part or "all")
end

---@return boolean
function M.is_shown()
  return require("lacuna.ghost").is_shown()
end

--- For a status line. Empty where no server serves the buffer.
---@return string
function M.statusline()
  local fetching = require("lacuna.models").progress()
  return fetching ~= "" and fetching or require("lacuna.status").line()
end

return M
