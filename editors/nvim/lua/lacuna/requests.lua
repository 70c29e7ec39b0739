--- Requests with exactly one outcome each, also where Neovim keeps quiet: a reply that says "cancelled" never reaches a
--- handler, and a server that is gone never replies.

---@class lacuna.Outcome
---@field kind "result"|"error"|"cancelled"
---@field result? any
---@field error? lsp.ResponseError

---@class lacuna.Handle
---@field cancel fun() take the request back; its outcome is "cancelled", at once. Harmless when it is over.

local M = {}

---@type table<integer, table<integer, fun(outcome: lacuna.Outcome)>> by client and request
local waiting = {}

---@param client vim.lsp.Client
---@param method string
---@param params table
---@param buf integer
---@param on_outcome fun(outcome: lacuna.Outcome)
---@return lacuna.Handle
function M.send(client, method, params, buf, on_outcome)
  local id ---@type integer?
  local is_over = false
  local function finish(outcome)
    if is_over then
      return
    end
    is_over = true
    if id and waiting[client.id] then
      waiting[client.id][id] = nil
    end
    on_outcome(outcome)
  end
  local is_sent, request = client:request(method, params, function(err, result)
    finish(err and { kind = "error", error = err } or { kind = "result", result = result })
  end, buf)
  if not is_sent or not request then
    vim.schedule(function()
      finish({ kind = "error", error = { code = 0, message = "the server is not running: `:Lacuna restart`" } })
    end)
    return { cancel = function() end }
  end
  id = request
  waiting[client.id] = waiting[client.id] or {}
  waiting[client.id][id] = finish
  return {
    cancel = function()
      if not is_over then
        client:cancel_request(request)
        finish({ kind = "cancelled" })
      end
    end,
  }
end

---@param client_id integer
---@param request integer
local function completed(client_id, request)
  -- The handler, if it is to run at all, is scheduled already.
  vim.schedule(function()
    local finish = (waiting[client_id] or {})[request]
    if finish then
      finish({ kind = "cancelled" })
    end
  end)
end

---@param client_id integer
local function left(client_id)
  local finishes = waiting[client_id] or {}
  waiting[client_id] = nil
  for _, finish in pairs(finishes) do
    finish({ kind = "error", error = { code = 0, message = "the server has ended: `:Lacuna restart`" } })
  end
end

--- How many requests wait for an answer.
---@return integer
function M.count()
  local count = 0
  for _, finishes in pairs(waiting) do
    count = count + vim.tbl_count(finishes)
  end
  return count
end

---@param group integer
function M.listen(group)
  vim.api.nvim_create_autocmd("LspRequest", {
    group = group,
    callback = function(event)
      if event.data.request.type == "complete" then
        completed(event.data.client_id, event.data.request_id)
      end
    end,
  })
  vim.api.nvim_create_autocmd("LspDetach", {
    group = group,
    callback = function(event)
      local client_id = event.data.client_id
      vim.schedule(function()
        local client = vim.lsp.get_client_by_id(client_id)
        if waiting[client_id] and (client == nil or client:is_stopped()) then
          left(client_id)
        end
      end)
    end,
  })
end

return M
