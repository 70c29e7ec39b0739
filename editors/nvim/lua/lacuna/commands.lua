--- The command `:Lacuna`, with a subcommand for everything that a key does and more.

local notice = require("lacuna.notice")
local selection = require("lacuna.selection")

---@class lacuna.Subcommand
---@field run fun(call: vim.api.keyset.create_user_command.command_args, rest: string)
---@field complete? fun(): string[]
---@field help string

local M = {}

---@param call vim.api.keyset.create_user_command.command_args
---@return lacuna.rewrite.Bounds?
local function lines_of(call)
  return call.range > 0 and selection.lines(call.line1 - 1, call.line2 - 1) or nil
end

---@param rest string
---@return string?
local function words(rest)
  return rest ~= "" and rest or nil
end

---@type table<string, lacuna.Subcommand>
M.subcommands = {
  rewrite = {
    help = "rewrite the lines of the range, by the words behind it",
    run = function(call, rest)
      require("lacuna.rewrite").start(lines_of(call) or selection.take(), words(rest))
    end,
  },
  accept = {
    help = "accept the rewrite at the cursor",
    run = function()
      require("lacuna.rewrite").accept_all()
    end,
  },
  hunk = {
    help = "accept, reject or next: one change of the rewrite",
    complete = function()
      return { "accept", "reject", "next" }
    end,
    run = function(_, rest)
      local rewrite = require("lacuna.rewrite")
      if rest == "next" then
        rewrite.next_hunk()
      elseif rest == "accept" or rest == "reject" then
        rewrite.judge(rest == "accept")
      else
        notice.tell("`:Lacuna hunk` takes accept, reject or next", vim.log.levels.WARN)
      end
    end,
  },
  retry = {
    help = "another text for the same instruction",
    run = function()
      require("lacuna.rewrite").retry()
    end,
  },
  refine = {
    help = "rewrite by a further instruction",
    run = function(_, rest)
      require("lacuna.rewrite").refine(words(rest))
    end,
  },
  cancel = {
    help = "cancel what runs, or take the diff away",
    run = function()
      require("lacuna.rewrite").cancel()
    end,
  },
  holes = {
    help = "fill the holes of the range, or of the buffer",
    run = function(call)
      require("lacuna.actions").fill_holes(lines_of(call))
    end,
  },
  fill = {
    help = "fill the lines of the range from their surroundings",
    run = function(call)
      require("lacuna.actions").fill_selection(lines_of(call) or selection.take())
    end,
  },
  snooze = {
    help = "no ghost text for so many minutes (10)",
    run = function(_, rest)
      local minutes = rest == "" and 10 or tonumber(rest)
      if not minutes or minutes <= 0 then
        notice.tell("`:Lacuna snooze` takes a number of minutes", vim.log.levels.WARN)
        return
      end
      require("lacuna.pause").snooze(minutes)
    end,
  },
  resume = {
    help = "ghost text again",
    run = function()
      require("lacuna.pause").resume()
    end,
  },
  language = {
    help = "suggestions in a language (the buffer's) off, or on again",
    complete = function()
      return vim.fn.getcompletion("", "filetype")
    end,
    run = function(_, rest)
      local language = words(rest) or vim.bo.filetype
      if language == "" then
        notice.tell("this buffer has no language; name one", vim.log.levels.WARN)
        return
      end
      require("lacuna.pause").toggle_language(language)
    end,
  },
  status = {
    help = "how the engine is",
    run = function()
      notice.answer(require("lacuna.status").in_words())
    end,
  },
  trace = {
    help = "show how a text for the cursor comes about",
    run = function()
      require("lacuna.trace").show()
    end,
  },
  model = {
    help = "choose a model; `stop` ends the fetching of one",
    complete = function()
      return { "stop" }
    end,
    run = function(_, rest)
      local models = require("lacuna.models")
      if rest == "stop" then
        models.stop()
      else
        models.pick()
      end
    end,
  },
  restart = {
    help = "start the server anew",
    run = function()
      require("lacuna.server").restart()
    end,
  },
  install = {
    help = "show how the server is installed, and do it after a yes",
    run = function()
      require("lacuna.install").offer()
    end,
  },
  trust = {
    help = "let the server in this project's environment run",
    run = function()
      require("lacuna.install").trust()
    end,
  },
  doctor = {
    help = "check everything: `:checkhealth lacuna`",
    run = function()
      vim.cmd.checkhealth("lacuna")
    end,
  },
}

---@param call vim.api.keyset.create_user_command.command_args
local function run(call)
  local name, rest = call.args:match("^%s*(%S*)%s*(.-)%s*$")
  local subcommand = M.subcommands[name]
  if not subcommand then
    local names = vim.tbl_keys(M.subcommands)
    table.sort(names)
    notice.tell(("there is no `:Lacuna %s`; there are %s"):format(name, table.concat(names, ", ")), vim.log.levels.WARN)
    return
  end
  subcommand.run(call, rest)
end

---@param lead string
---@param line string
---@return string[]
local function complete(lead, line)
  local name = line:match("Lacuna!?%s+(%S+)%s")
  local candidates
  if name then
    local subcommand = M.subcommands[name]
    candidates = subcommand and subcommand.complete and subcommand.complete() or {}
  else
    candidates = vim.tbl_keys(M.subcommands)
  end
  table.sort(candidates)
  return vim.tbl_filter(function(candidate)
    return vim.startswith(candidate, lead)
  end, candidates)
end

function M.define()
  vim.api.nvim_create_user_command("Lacuna", run, {
    nargs = "+",
    range = true,
    complete = complete,
    desc = "Lacuna: " .. "rewrite, holes, model, doctor, …",
  })
end

return M
