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

---@param buf integer
---@return lsp.VersionedTextDocumentIdentifier
function M.document(buf)
  return { uri = vim.uri_from_bufnr(buf), version = vim.lsp.util.buf_versions[buf] }
end

return M
