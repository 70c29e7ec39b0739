--- The command `lacuna`, run beside the editor.

local notice = require("lacuna.notice")
local server = require("lacuna.server")

local M = {}

--- Run `lacuna` with arguments; `on_exit` is called in the main loop. A command that cannot be run is told of.
---@param arguments string[]
---@param opts { stdin?: string, on_line?: fun(line: string), cwd?: string }
---@param on_exit fun(done: vim.SystemCompleted)
---@return vim.SystemObj?
function M.run(arguments, opts, on_exit)
  local found, problem = server.find(server.root_of(0))
  if not found then
    notice.tell(problem or "", vim.log.levels.WARN)
    return nil
  end
  local rest, said = "", {}
  local function hear(_, data)
    if not data then
      return
    end
    said[#said + 1] = data
    rest = rest .. data
    local lines = vim.split(rest, "\n", { plain = true })
    rest = table.remove(lines)
    for _, line in ipairs(opts.on_line and lines or {}) do
      vim.schedule(function()
        opts.on_line(line)
      end)
    end
  end
  local command = vim.list_extend(vim.deepcopy(found.cli), arguments)
  local is_running, job = pcall(
    vim.system,
    command,
    { text = true, stdin = opts.stdin, cwd = opts.cwd, stdout = hear },
    vim.schedule_wrap(function(done)
      done.stdout = table.concat(said)
      on_exit(done)
    end)
  )
  if not is_running then
    notice.tell(("%s cannot be run: %s"):format(command[1], job), vim.log.levels.ERROR)
    return nil
  end
  return job
end

--- What a command that failed said, in one line.
---@param done vim.SystemCompleted
---@return string
function M.complaint(done)
  local text = vim.trim(done.stderr or "")
  return text ~= "" and text or ("it ended with status %d"):format(done.code)
end

return M
