--- Installing the server: the exact commands, shown first, and run only after a yes.

local notice = require("lacuna.notice")
local server = require("lacuna.server")

local M = {}

--- The checkout this plug-in is part of; nil where only the plug-in was copied.
---@return string?
local function checkout()
  local here = vim.fs.dirname(debug.getinfo(1, "S").source:sub(2))
  local root = vim.fs.normalize(vim.fs.joinpath(here, "..", "..", "..", ".."))
  root = vim.uv.fs_realpath(root) or root
  local handle = io.open(vim.fs.joinpath(root, "pyproject.toml"), "r")
  if not handle then
    return nil
  end
  local is_ours = handle:read("*a"):find('\nname = "lacuna"', 1, true) ~= nil
  handle:close()
  return is_ours and root or nil
end

--- What installs the server, one command after the other.
---@return string[][]?
---@return string? problem in words
function M.commands()
  local root = checkout()
  if not root then
    return nil, "only the plug-in is here; install Lacuna as its README says, then set vim.g.lacuna.python"
  end
  local python = vim.fn.exepath("python3") ~= "" and "python3" or "python"
  if vim.fn.executable(python) == 0 then
    return nil, "there is no Python; install version 3.11 or newer first"
  end
  local environment = server.own_environment()
  local pip = vim.fs.joinpath(vim.fs.dirname(server.script_in(environment)), "pip")
  return { { python, "-m", "venv", environment }, { pip, "install", root } }
end

---@param commands string[][]
---@return string
local function as_line(commands)
  return table.concat(
    vim.tbl_map(function(command)
      return table.concat(vim.tbl_map(vim.fn.shellescape, command), " ")
    end, commands),
    " && "
  )
end

--- Run the commands where a person sees what they say.
---@param commands string[][]
local function run(commands)
  vim.cmd("botright 12new")
  vim.fn.jobstart({ vim.o.shell, vim.o.shellcmdflag, as_line(commands) }, {
    term = true,
    on_exit = function(_, code)
      if code == 0 then
        notice.tell("the server is installed; it fetches its model when you say `:Lacuna model`")
        server.restart()
      else
        notice.tell("the installation failed; what it said is in the window below", vim.log.levels.ERROR)
      end
    end,
  })
end

--- Show the commands and ask.
function M.offer()
  local commands, problem = M.commands()
  if not commands then
    notice.tell(problem or "", vim.log.levels.WARN)
    return
  end
  vim.ui.select({ "Run it", "Not now" }, {
    prompt = "Lacuna's server is installed by\n  " .. as_line(commands) .. "\n",
  }, function(_, number)
    if number == 1 then
      run(commands)
    end
  end)
end

--- Let the server of the project's own environment run.
function M.trust()
  local trust = require("lacuna.trust")
  local folders = server.project_environments(server.root_of(0))
  local folder = folders[1]
  if not folder then
    notice.tell("this project has no environment with a server in it", vim.log.levels.WARN)
    return
  end
  vim.ui.select({ "Trust it", "Not now" }, {
    prompt = ("Run %s whenever a file of this project is opened?"):format(server.script_in(folder)),
  }, function(_, number)
    if number == 1 then
      trust.add(folder)
      server.restart()
    end
  end)
end

return M
