--- `:checkhealth lacuna`.

local clients = require("lacuna.clients")
local options = require("lacuna.options")
local server = require("lacuna.server")

local M = {}

-- The doctor loads libraries; on a slow disk that takes its time.
local DOCTOR_MS = 60000

local function check_neovim()
  vim.health.start("Neovim")
  if vim.fn.has("nvim-0.11") == 1 then
    vim.health.ok("version " .. tostring(vim.version()))
  else
    vim.health.error("Neovim 0.11 or newer is needed")
  end
  local problems = options.problems()
  for _, problem in ipairs(problems) do
    vim.health.warn(problem, { "see `:help lacuna-options`" })
  end
  if #problems == 0 then
    vim.health.ok("vim.g.lacuna is in order")
  end
  local keys = options.get().keys
  local accept = keys and keys.accept
  if accept then
    local mapping = vim.fn.maparg(accept, "i", false, true)
    if (mapping.desc or ""):match("^Lacuna") then
      vim.health.ok(accept .. " accepts ghost text, and otherwise does what it did before")
    else
      vim.health.info(accept .. " belongs to something else; `<Plug>(lacuna-accept)` can be mapped to another key")
    end
  end
end

---@return lacuna.Found?
local function check_server()
  vim.health.start("Server")
  if options.get().cmd then
    vim.health.ok("vim.g.lacuna.cmd: " .. table.concat(options.get().cmd, " "))
  end
  local found, problem = server.find(server.root_of(0))
  if not found then
    local advice = { "`:Lacuna install` shows the commands, and runs them after a yes", "or set vim.g.lacuna.python" }
    vim.health.error(problem or "", advice)
    return nil
  end
  local version = vim.system(vim.list_extend(vim.deepcopy(found.cli), { "lsp", "--version" }), { text = true }):wait()
  if version.code == 0 then
    vim.health.ok(("%s, from %s"):format(vim.trim(version.stdout), found.where))
  else
    vim.health.error(("%s cannot be run"):format(table.concat(found.cli, " ")), { vim.trim(version.stderr or "") })
    return nil
  end
  return found
end

local function check_clients()
  local attached = vim.lsp.get_clients({ name = clients.NAME })
  if #attached == 0 then
    vim.health.info("no server runs in this Neovim: open a file")
  end
  for _, client in ipairs(attached) do
    local count = vim.tbl_count(client.attached_buffers)
    vim.health.ok(("a server runs for %d buffer%s, %s"):format(count, count == 1 and "" or "s", client.offset_encoding))
  end
end

---@param found lacuna.Found
local function check_engine(found)
  vim.health.start("Engine (lacuna doctor)")
  local command = vim.list_extend(vim.deepcopy(found.cli), { "doctor", "--json" })
  local done = vim.system(command, { text = true, timeout = DOCTOR_MS }):wait()
  local is_json, report = pcall(vim.json.decode, done.stdout or "")
  if not is_json or type(report) ~= "table" then
    vim.health.error("the doctor gave no report", { vim.trim(done.stderr or "") })
    return
  end
  for _, check in ipairs(report.checks or {}) do
    local text = ("%s: %s"):format(check.subject, check.finding)
    local advice = type(check.remedy) == "string" and check.remedy ~= "" and { check.remedy } or nil
    if check.verdict == "ok" then
      vim.health.ok(text)
    elseif check.verdict == "fault" then
      vim.health.error(text, advice)
    else
      vim.health.warn(text, advice)
    end
  end
end

function M.check()
  check_neovim()
  local found = check_server()
  check_clients()
  if found then
    check_engine(found)
  end
end

return M
