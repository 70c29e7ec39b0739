--- Times and languages without ghost text.

local clients = require("lacuna.clients")
local notice = require("lacuna.notice")

local M = {}

local until_ms ---@type number?
local timer ---@type uv.uv_timer_t?

---@type table<string, boolean> languages turned off (true) or on (false) since Neovim was started
local languages = {}

local function changed()
  -- It asks for what is off here.
  require("lacuna.status").changed()
end

local function stop_timer()
  if timer then
    timer:stop()
    timer:close()
    timer = nil
  end
end

---@return boolean
function M.is_snoozing()
  return until_ms ~= nil and vim.uv.now() < until_ms
end

--- Whole minutes until ghost text comes back, rounded up.
---@return integer
function M.minutes_left()
  return M.is_snoozing() and math.ceil((until_ms - vim.uv.now()) / 60000) or 0
end

--- No ghost text for so many minutes.
---@param minutes number
function M.snooze(minutes)
  stop_timer()
  until_ms = vim.uv.now() + minutes * 60000
  timer = assert(vim.uv.new_timer())
  timer:start(
    math.ceil(minutes * 60000),
    0,
    vim.schedule_wrap(function()
      stop_timer()
      changed()
    end)
  )
  notice.tell(("no ghost text for %g minute%s; `:Lacuna resume` ends that"):format(minutes, minutes == 1 and "" or "s"))
  changed()
end

function M.resume()
  stop_timer()
  until_ms = nil
  changed()
end

---@param language string
---@return boolean
function M.is_off(language)
  return languages[language] == true
end

--- Tell the servers, too: the menu's entry belongs to what is suggested while typing.
local function tell_servers()
  for _, client in ipairs(vim.lsp.get_clients({ name = clients.NAME })) do
    local settings = vim.deepcopy(client.settings or {})
    settings.lacuna = settings.lacuna or {}
    local off = {}
    for _, language in ipairs(settings.lacuna.disabledLanguages or {}) do
      off[language] = true
    end
    off = vim.tbl_extend("force", off, languages)
    settings.lacuna.disabledLanguages = vim.tbl_filter(function(language)
      return off[language]
    end, vim.tbl_keys(off))
    table.sort(settings.lacuna.disabledLanguages)
    client.settings = settings
    client:notify("workspace/didChangeConfiguration", { settings = settings })
  end
end

--- Turn suggestions off for a language, or on again; in this Neovim, until it ends.
---@param language string
function M.toggle_language(language)
  local is_off = not M.is_off(language)
  languages[language] = is_off
  tell_servers()
  notice.tell(("suggestions in %s are %s"):format(language, is_off and "off" or "on"))
  changed()
end

--- A server that has just started knows nothing of the languages turned off before.
function M.attached()
  if next(languages) then
    tell_servers()
  end
end

---@param buf integer
---@return boolean
function M.is_paused(buf)
  return M.is_snoozing() or M.is_off(vim.bo[buf].filetype)
end

return M
