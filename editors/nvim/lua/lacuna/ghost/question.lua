--- The question for ghost text at the cursor, and the offers in its answer.

local cursor = require("lacuna.ghost.cursor")
local offers = require("lacuna.ghost.offer")
local positions = require("lacuna.positions")
local protocol = require("lacuna.protocol")
local requests = require("lacuna.requests")

local M = {}

--- The items that fit what stands at the cursor now.
---@param buf integer
---@param client vim.lsp.Client
---@param items lsp.InlineCompletionItem[]
---@return lacuna.ghost.Offer[]
function M.offers_of(buf, client, items)
  local row, col, line = cursor.at()
  local found = {}
  for _, item in ipairs(items) do
    local first, start, stop = row, col, col
    if item.range then
      first, start = positions.to_bytes(buf, item.range.start, client.offset_encoding)
      _, stop = positions.to_bytes(buf, item.range["end"], client.offset_encoding)
    end
    local offer = offers.new(first, start, stop, col, line, item)
    if offers.left(offer, row, col, line) then
      found[#found + 1] = offer
    end
  end
  return found
end

---@param buf integer
---@param client vim.lsp.Client
---@param trigger integer of the specification's kinds
---@param answered fun(items: lsp.InlineCompletionItem[]) none, too, where it was refused or cancelled
---@return lacuna.Handle
function M.ask(buf, client, trigger, answered)
  local row, col = cursor.at()
  local params = {
    textDocument = { uri = vim.uri_from_bufnr(buf) },
    position = positions.to_lsp(buf, row, col, client.offset_encoding),
    context = { triggerKind = trigger },
  }
  return requests.send(client, protocol.INLINE_COMPLETION, params, buf, function(outcome)
    local result = outcome.kind == "result" and outcome.result or {}
    answered(result.items or result)
  end)
end

return M
