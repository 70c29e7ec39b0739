--- Choosing a model, and fetching one that is not here: only after a yes, with its progress in the status line.

local cli = require("lacuna.cli")
local notice = require("lacuna.notice")
local server = require("lacuna.server")
local status = require("lacuna.status")

---@class lacuna.Model
---@field name string
---@field status string "here" or why it cannot be used
---@field size? integer|string
---@field default? boolean
---@field licence? string
---@field loadable? boolean false: no version of the server that is here can load it

local M = {}

---@type { name: string, percent: integer, job: vim.SystemObj }?
local pull

--- What is being fetched, for the status line.
---@return string
function M.progress()
  return pull and ("Lacuna: fetching %s %d %%"):format(pull.name, pull.percent) or ""
end

---@param text string
---@return lacuna.Model[]?
local function parsed(text)
  local is_json, found = pcall(vim.json.decode, text)
  if is_json and type(found) == "table" then
    return found.models or found
  end
end

---@param name string
local function use(name)
  server.choose_model(name)
  notice.tell("the model is " .. name)
  server.restart()
end

---@param name string
---@param line string
---@return string? problem
local function hear(name, line)
  local is_json, event = pcall(vim.json.decode, line)
  if not is_json or type(event) ~= "table" or not pull then
    return nil
  end
  if event.event == "progress" and type(event.total) == "number" and event.total > 0 then
    pull.percent = math.floor(100 * event.done / event.total)
    status.changed()
  elseif event.event == "error" then
    return ("%s was not fetched: %s. %s"):format(name, event.message, event.remedy)
  end
end

--- Fetch a model, then use it.
---@param name string
function M.fetch(name)
  if pull then
    notice.tell(pull.name .. " is being fetched; `:Lacuna model stop` ends that", vim.log.levels.WARN)
    return
  end
  local problem ---@type string?
  local job = cli.run({ "models", "pull", name, "--json" }, {
    on_line = function(line)
      problem = hear(name, line) or problem
    end,
  }, function(done)
    local was_stopped = pull == nil
    pull = nil
    status.changed()
    if done.code == 0 then
      use(name)
    elseif not was_stopped then
      notice.tell(problem or cli.complaint(done), vim.log.levels.ERROR)
    end
  end)
  if job then
    pull = { name = name, percent = 0, job = job }
    notice.tell("fetching " .. name)
  end
end

--- End the fetching; what has arrived is kept for the next time.
function M.stop()
  if pull then
    local job = pull.job
    pull = nil
    job:kill("sigint")
    notice.tell("the fetching was stopped")
  else
    notice.tell("no model is being fetched")
  end
end

---@param model lacuna.Model
---@return string
local function described(model)
  local parts = { model.name, model.status, model.licence }
  if type(model.size) == "number" then
    parts[#parts + 1] = ("%d MB"):format(math.ceil(model.size / 1e6))
  elseif type(model.size) == "string" then
    parts[#parts + 1] = model.size
  end
  if model.default == true then
    parts[#parts + 1] = "the default"
  end
  return table.concat(
    vim.tbl_filter(function(part)
      return type(part) == "string" and part ~= ""
    end, parts),
    ", "
  )
end

---@param model lacuna.Model
local function choose(model)
  if model.status == "here" then
    use(model.name)
    return
  end
  if model.loadable == false then
    notice.tell(model.name .. " is known, but a later version of the server is the first to load it")
    return
  end
  vim.ui.select({ "Fetch it", "Not now" }, {
    prompt = ("%s is not here (%s). Fetch it?"):format(model.name, described(model)),
  }, function(_, number)
    if number == 1 then
      M.fetch(model.name)
    end
  end)
end

--- Show the models and let a person choose.
function M.pick()
  cli.run({ "models", "list", "--json" }, {}, function(done)
    local models = done.code == 0 and parsed(done.stdout)
    if not models then
      notice.tell(cli.complaint(done), vim.log.levels.ERROR)
      return
    end
    vim.ui.select(models, { prompt = "Lacuna's model", format_item = described }, function(model)
      if model then
        choose(model)
      end
    end)
  end)
end

return M
