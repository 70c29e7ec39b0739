--- Finding Lacuna's server: what is configured, the environment in use, the project's own, the path, the plug-in's own.
---
--- A project's `.venv` is somebody else's code: it is run only after `:Lacuna trust`.

local notice = require("lacuna.notice")
local options = require("lacuna.options")
local trust = require("lacuna.trust")

---@class lacuna.Found
---@field cli string[] the command `lacuna`, without a subcommand
---@field where string in words

local M = {}

local IS_WINDOWS = vim.fn.has("win32") == 1
local SCRIPTS = IS_WINDOWS and "Scripts" or "bin"
local LACUNA = IS_WINDOWS and "lacuna.exe" or "lacuna"

--- Set by the model picker: goes before the options, until Neovim ends.
---@type string?
local chosen_model

---@param folder string of a virtual environment
---@return string
function M.script_in(folder)
  return vim.fs.joinpath(folder, SCRIPTS, LACUNA)
end

--- Where the plug-in installs Lacuna when asked.
---@return string
function M.own_environment()
  return vim.fs.joinpath(vim.fn.stdpath("data"), "lacuna", "venv")
end

---@param path string
---@param where string
---@return lacuna.Found?
local function script(path, where)
  if vim.fn.executable(path) == 1 then
    return { cli = { path }, where = where }
  end
end

---@param python string
---@return lacuna.Found
local function by_interpreter(python)
  local beside = vim.fs.joinpath(vim.fs.dirname(vim.fn.exepath(python)), LACUNA)
  return script(beside, "vim.g.lacuna.python")
    or { cli = { python, "-m", "engine.cli.main" }, where = "vim.g.lacuna.python" }
end

--- Environments in a project that hold a server, trusted or not.
---@param root? string
---@return string[]
function M.project_environments(root)
  local found = {}
  for _, name in ipairs(root and { ".venv", "venv" } or {}) do
    local folder = vim.fs.joinpath(root, name)
    if vim.fn.executable(M.script_in(folder)) == 1 then
      found[#found + 1] = folder
    end
  end
  return found
end

---@param root? string the project's folder
---@return lacuna.Found?
---@return string? problem in words, where there is none
function M.find(root)
  local python = options.get().python
  if python then
    python = vim.fs.normalize(python)
    if vim.fn.executable(python) == 0 then
      return nil, ("vim.g.lacuna.python is %s, which cannot be run"):format(python)
    end
    return by_interpreter(python)
  end
  local active = vim.env.VIRTUAL_ENV
  local found = active and script(M.script_in(active), "the environment in use, " .. active)
  for _, folder in ipairs(found and {} or M.project_environments(root)) do
    if trust.is_trusted(folder) then
      found = found or script(M.script_in(folder), "the project's environment, " .. folder)
    end
  end
  found = found
    or script(LACUNA, "the path, " .. vim.fn.exepath(LACUNA))
    or script(M.script_in(M.own_environment()), "the plug-in's own environment")
  if found then
    return found
  end
  local untrusted = M.project_environments(root)[1]
  if untrusted then
    return nil, ("there is a server in %s; `:Lacuna trust` lets it run"):format(untrusted)
  end
  return nil, "the server was not found; `:Lacuna install` shows how to install it, and does it when you say so"
end

---@param name? string a model's name or path
function M.choose_model(name)
  chosen_model = name
end

---@return string?
function M.model()
  return chosen_model or options.get().model
end

--- The whole command of the server.
---@param root? string
---@return string[]?
---@return string? problem
function M.command(root)
  local command = options.get().cmd
  if command then
    return vim.deepcopy(command)
  end
  local found, problem = M.find(root)
  if not found then
    return nil, problem
  end
  command = vim.list_extend(vim.deepcopy(found.cli), { "lsp" })
  local model = M.model()
  return model and vim.list_extend(command, { "--model", model }) or command
end

---@param buf integer
---@return string?
function M.root_of(buf)
  return vim.fs.root(buf, { { "pyproject.toml", "package.json", "Cargo.toml", "go.mod" }, ".git" })
end

--- Whether another buffer without a name is served already: both would be the same document to a server.
---@param buf integer
---@return boolean
local function is_second_untitled(buf)
  if vim.api.nvim_buf_get_name(buf) ~= "" then
    return false
  end
  for _, client in ipairs(vim.lsp.get_clients({ name = "lacuna" })) do
    for other in pairs(client.attached_buffers) do
      if other ~= buf and vim.api.nvim_buf_get_name(other) == "" then
        return true
      end
    end
  end
  return false
end

--- `root_dir` of the LSP configuration: starts a server only where there is one, and says once where there is none.
---@param buf integer
---@param on_dir fun(root?: string)
function M.root_dir(buf, on_dir)
  if is_second_untitled(buf) then
    notice.tell_once("one buffer without a name is served at a time: write this one, then `:edit`")
    return
  end
  local root = M.root_of(buf)
  local command, problem = M.command(root)
  if command then
    on_dir(root)
  else
    notice.tell_once(problem or "")
  end
end

--- `cmd` of the LSP configuration.
---@param dispatchers vim.lsp.rpc.Dispatchers
---@param config vim.lsp.ClientConfig
---@return vim.lsp.rpc.PublicClient
function M.spawn(dispatchers, config)
  local command, problem = M.command(config.root_dir)
  if not command then
    error(problem, 0)
  end
  return vim.lsp.rpc.start(command, dispatchers, { cwd = config.cmd_cwd, env = config.cmd_env })
end

--- End the servers of this Neovim and start them anew, with what is configured now.
function M.restart()
  require("lacuna.rewrite").end_all_running()
  local attached = {}
  for _, client in ipairs(vim.lsp.get_clients({ name = "lacuna" })) do
    vim.list_extend(attached, vim.tbl_keys(client.attached_buffers))
    client:stop()
  end
  notice.forget()
  vim.lsp.enable("lacuna", false)
  local tries = 0
  local function start()
    tries = tries + 1
    -- A server that does not leave when asked is made to.
    for _, client in ipairs(vim.lsp.get_clients({ name = "lacuna" })) do
      if not client:is_stopped() then
        if tries == 20 then
          client:stop(true)
        end
        vim.defer_fn(start, 100)
        return
      end
    end
    vim.lsp.enable("lacuna")
  end
  start()
end

return M
