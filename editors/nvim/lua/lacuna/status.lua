--- How the engine is, as the server tells it, in a few characters for a status line.

local clients = require("lacuna.clients")
local pause = require("lacuna.pause")

local M = {}

---@type table<integer, lacuna.StatusParams> by client
local told = {}

---@type table<lacuna.State, string>
local WORDS = {
  idle = "idle",
  starting = "starting",
  loading = "loading",
  ready = "ready",
  busy = "busy",
  failed = "failed",
}

--- Something that the status line says has changed.
---@param data? lacuna.StatusParams
function M.changed(data)
  vim.api.nvim_exec_autocmds("User", { pattern = "LacunaStatus", modeline = false, data = data })
  vim.cmd.redrawstatus({ bang = true })
end

--- Handler of `lacuna/status`.
---@param params lacuna.StatusParams
---@param client_id integer
function M.hear(params, client_id)
  told[client_id] = params
  M.changed(params)
end

--- A server came to serve a buffer, or left it.
---@param group integer
function M.listen(group)
  vim.api.nvim_create_autocmd({ "LspAttach", "LspDetach" }, {
    group = group,
    callback = function()
      vim.schedule(function()
        for client_id in pairs(told) do
          if not vim.lsp.get_client_by_id(client_id) then
            told[client_id] = nil
          end
        end
        M.changed()
      end)
    end,
  })
end

--- Whether a server has told that its engine answers.
---@param client_id integer
---@return boolean
function M.is_ready(client_id)
  local status = told[client_id]
  return status ~= nil and (status.state == "ready" or status.state == "busy")
end

--- What the server of a buffer told last; nil where none serves it.
---@param buf? integer
---@return lacuna.StatusParams?
function M.get(buf)
  local client = clients.of(buf or vim.api.nvim_get_current_buf())
  return client and told[client.id] or nil
end

--- For a status line: `%{v:lua.require'lacuna'.statusline()}`. Empty where no server serves the buffer.
---@param buf? integer
---@return string
function M.line(buf)
  buf = buf or vim.api.nvim_get_current_buf()
  local client = clients.of(buf)
  if not client then
    return ""
  end
  if pause.is_snoozing() then
    return ("Lacuna: snoozing, %d min"):format(pause.minutes_left())
  end
  if pause.is_off(vim.bo[buf].filetype) then
    return "Lacuna: off in " .. vim.bo[buf].filetype
  end
  local status = told[client.id]
  if not status then
    return "Lacuna"
  end
  local percent = status.percent
  local share = type(percent) == "number" and (" %d %%"):format(percent) or ""
  return "Lacuna: " .. (WORDS[status.state] or status.state) .. share
end

--- All of it in words, for `:Lacuna status`.
---@return string
function M.in_words()
  local status = M.get()
  if not status then
    return M.line() == "" and "no server serves this buffer" or M.line()
  end
  local parts = { M.line():gsub("^Lacuna: ", ""), status.model, status.message, status.remedy }
  return table.concat(
    vim.tbl_filter(function(part)
      return type(part) == "string" and part ~= ""
    end, parts),
    "; "
  )
end

return M
