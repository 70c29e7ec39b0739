--- What was typed while nobody could be asked about it: no server yet, one that waits for its settings, or an engine
--- that is not ready. It is asked about once that has changed, so that the next key need not be waited for.

local status = require("lacuna.status")

local M = {}

---@type table<integer, true> by buffer
local typed = {}
---@type table<integer, true> clients that know their settings: before that they suggest nothing
local is_told = {}

--- Something was typed that no server could be asked about.
---@param buf integer
function M.note(buf)
  typed[buf] = true
end

--- A server had nothing to offer, which counts only where it could have had something.
---@param buf integer
---@param client_id integer
function M.came_empty(buf, client_id)
  if not (is_told[client_id] and status.is_ready(client_id)) then
    typed[buf] = true
  end
end

---@param buf integer
function M.forget(buf)
  typed[buf] = nil
end

--- A server knows its settings, or its engine is ready.
---@param client_id integer
---@param what "settings"|"engine"
function M.ready(client_id, what)
  is_told[client_id] = is_told[client_id] or what == "settings" or nil
end

--- Whether a buffer's text is to be asked about now; true once.
---@param buf integer
---@param client_id integer
---@return boolean
function M.take(buf, client_id)
  local is_due = typed[buf] and is_told[client_id] or false
  if is_due then
    typed[buf] = nil
  end
  return is_due
end

return M
