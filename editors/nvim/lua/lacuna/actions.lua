--- Fill holes and Fill selection: the server's own code actions, without the menu.

local clients = require("lacuna.clients")
local notice = require("lacuna.notice")
local positions = require("lacuna.positions")
local protocol = require("lacuna.protocol")
local requests = require("lacuna.requests")
local rewrite = require("lacuna.rewrite")

local M = {}

local THE_FILL = "the fill"

--- The rows of a buffer that an edit changes.
---@param buf integer
---@param edit lsp.WorkspaceEdit
---@return lacuna.rewrite.Rows[]
local function rows_of(buf, edit)
  local uri = vim.uri_from_bufnr(buf)
  local edits = vim.list_slice((edit.changes or {})[uri] or {})
  for _, change in ipairs(edit.documentChanges or {}) do
    if change.textDocument and change.textDocument.uri == uri then
      vim.list_extend(edits, change.edits)
    end
  end
  return vim.tbl_map(function(each)
    return { row = each.range.start.line, end_row = each.range["end"].line }
  end, edits)
end

---@param client vim.lsp.Client
---@param buf integer
---@param edit lsp.WorkspaceEdit
local function apply(client, buf, edit)
  if not vim.bo[buf].modifiable then
    notice.tell(clients.NOT_MODIFIABLE, vim.log.levels.WARN)
    return
  end
  for _, change in ipairs(edit.documentChanges or {}) do
    local version = change.textDocument and change.textDocument.version
    if type(version) == "number" and version ~= vim.lsp.util.buf_versions[buf] then
      notice.tell("the text was changed meanwhile, so nothing was filled", vim.log.levels.WARN)
      return
    end
  end
  rewrite.make_room(buf, rows_of(buf, edit), THE_FILL)
  vim.lsp.util.apply_workspace_edit(edit, client.offset_encoding)
end

---@param client vim.lsp.Client
---@param buf integer
---@param outcome lacuna.Outcome
local function resolved(client, buf, outcome)
  if outcome.kind == "error" then
    local is_modified = outcome.error.code == protocol.CONTENT_MODIFIED
    notice.tell(
      is_modified and "the text was changed meanwhile, so nothing was filled" or outcome.error.message,
      is_modified and vim.log.levels.WARN or vim.log.levels.ERROR
    )
  elseif outcome.kind == "result" and vim.api.nvim_buf_is_loaded(buf) then
    -- Without an edit the server has told why.
    local edit = (outcome.result or {}).edit
    if edit then
      apply(client, buf, edit)
    end
  end
end

--- Run the first action there is of some kinds, in their order.
---@param bounds lacuna.rewrite.Bounds
---@param kinds string[]
---@param none string what to say where there is none
---@param is_chosen boolean whether somebody chose the stretch: then what stands on all of its rows makes room
local function run(bounds, kinds, none, is_chosen)
  local buf = vim.api.nvim_get_current_buf()
  local client, problem = clients.wait(buf)
  if not client then
    notice.tell(problem or "", vim.log.levels.WARN)
    return
  end
  local range = {
    start = positions.to_lsp(buf, bounds.row, bounds.col, client.offset_encoding),
    ["end"] = positions.to_lsp(buf, bounds.end_row, bounds.end_col, client.offset_encoding),
  }
  local params = {
    textDocument = { uri = vim.uri_from_bufnr(buf) },
    range = range,
    context = { diagnostics = {}, only = kinds, triggerKind = 1 },
  }
  requests.send(client, "textDocument/codeAction", params, buf, function(outcome)
    if outcome.kind == "error" then
      notice.tell(outcome.error.message, vim.log.levels.ERROR)
      return
    end
    for _, kind in ipairs(kinds) do
      for _, action in ipairs(outcome.result or {}) do
        if action.kind == kind and not action.disabled and vim.api.nvim_buf_is_loaded(buf) then
          if is_chosen then
            rewrite.make_room(buf, { bounds }, THE_FILL)
          end
          local job, finished = rewrite.show_action(buf, client, bounds, action.title)
          job.handle = requests.send(client, "codeAction/resolve", action, buf, function(answer)
            job.handle = nil
            finished()
            resolved(client, buf, answer)
          end)
          return
        end
      end
    end
    notice.tell(none)
  end)
end

--- Fill every hole of a stretch, or of the buffer.
---@param bounds? lacuna.rewrite.Bounds
function M.fill_holes(bounds)
  local last = vim.api.nvim_buf_line_count(0) - 1
  local length = #vim.api.nvim_buf_get_lines(0, last, last + 1, false)[1]
  local all = { row = 0, col = 0, end_row = last, end_col = length }
  run(bounds or all, { protocol.KIND_FILL_HOLES }, "there are no holes here", bounds ~= nil)
end

--- Fill the holes of a selection; without holes, the selection itself.
---@param bounds lacuna.rewrite.Bounds
function M.fill_selection(bounds)
  run(bounds, { protocol.KIND_FILL_HOLES, protocol.KIND_FILL }, "there is nothing to fill here", true)
end

return M
