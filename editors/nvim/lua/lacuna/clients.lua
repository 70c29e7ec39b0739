--- Which server serves a buffer, and whether a buffer is one to work in.

local M = {}

M.NAME = "lacuna"

---@param buf integer
---@return vim.lsp.Client?
function M.of(buf)
  for _, client in ipairs(vim.lsp.get_clients({ bufnr = buf, name = M.NAME })) do
    if client.initialized and not client:is_stopped() then
      return client
    end
  end
end

--- Whether a buffer holds a text that somebody writes: no prompt, no terminal, nothing that a plug-in shows.
---@param buf integer
---@return boolean
function M.is_text(buf)
  return vim.api.nvim_buf_is_loaded(buf) and vim.bo[buf].buftype == "" and vim.bo[buf].modifiable
end

M.NOT_MODIFIABLE = "this buffer cannot be changed: `:setlocal modifiable`, then again"

--- The server of a buffer to change. One on its way is waited for, a second at most: right after `:edit` there is none.
---@param buf integer
---@return vim.lsp.Client?
---@return string? problem
function M.wait(buf)
  if not vim.bo[buf].modifiable then
    return nil, M.NOT_MODIFIABLE
  end
  if not M.is_text(buf) then
    return nil, "this buffer is no text to work in"
  end
  local client = M.of(buf)
  if client then
    return client
  end
  local function is_coming()
    return #vim.lsp.get_clients({ name = M.NAME, _uninitialized = true }) > 0
  end
  if is_coming() then
    vim.wait(1000, function()
      client = M.of(buf)
      return client ~= nil
    end, 20)
  end
  if client then
    return client
  end
  local is_starting = vim.iter(vim.lsp.get_clients({ name = M.NAME, _uninitialized = true })):any(function(other)
    return not other.initialized
  end)
  if is_starting then
    return nil, "the server is starting: try again in a moment"
  end
  if vim.bo[buf].filetype == "" then
    return nil, "no server serves a buffer without a filetype: `:setf python` or the like"
  end
  return nil, "no server serves this buffer: `:checkhealth lacuna`"
end

---@param buf integer
---@return lsp.VersionedTextDocumentIdentifier
function M.document(buf)
  return { uri = vim.uri_from_bufnr(buf), version = vim.lsp.util.buf_versions[buf] }
end

return M
