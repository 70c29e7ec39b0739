--- Ghost text while typing: ask, show, type through, accept, choose, dismiss.
---
--- One state for each buffer. The newest request wins; what it brings is fitted to what stands at the cursor then, so
--- an answer that comes late shows nothing wrong.

local builtin = require("lacuna.ghost.builtin")
local clients = require("lacuna.clients")
local menus = require("lacuna.ghost.menus")
local offers = require("lacuna.ghost.offer")
local options = require("lacuna.options")
local pause = require("lacuna.pause")
local positions = require("lacuna.positions")
local protocol = require("lacuna.protocol")
local requests = require("lacuna.requests")
local status = require("lacuna.status")
local view = require("lacuna.ghost.view")

---@class lacuna.ghost.State
---@field handle? lacuna.Handle
---@field asked_at? string the place last asked about
---@field offers lacuna.ghost.Offer[]
---@field index integer
---@field chosen boolean whether a person leafed through the offers
---@field dismissed? string the place at which nothing is to be shown

local M = {}

---@type table<integer, lacuna.ghost.State>
local states = {}

---@type table<integer, true> buffers in which something was typed that no server could be asked about yet
local unserved = {}
---@type table<integer, true> clients that know their settings: before that they suggest nothing
local is_told = {}

---@param buf integer
---@return lacuna.ghost.State
local function state_of(buf)
  states[buf] = states[buf] or { offers = {}, index = 1, chosen = false }
  return states[buf]
end

---@return integer row
---@return integer col
---@return string line
local function cursor()
  local at = vim.api.nvim_win_get_cursor(0)
  return at[1] - 1, at[2], vim.api.nvim_get_current_line()
end

---@param buf integer
---@return string
local function place(buf)
  local row, col = cursor()
  return ("%d:%d:%d"):format(vim.api.nvim_buf_get_changedtick(buf), row, col)
end

---@return boolean
local function is_inserting()
  return vim.api.nvim_get_mode().mode:sub(1, 1) == "i"
end

---@param buf integer
---@return lacuna.ghost.Offer?
---@return lacuna.ghost.Left?
local function current(buf)
  local state = states[buf]
  if not state or buf ~= vim.api.nvim_get_current_buf() then
    return nil
  end
  local offer = state.offers[state.index]
  local left = offer and offers.left(offer, cursor())
  if left then
    return offer, left
  end
end

---@param buf integer
local function forget(buf)
  local state = states[buf]
  if not state then
    return
  end
  if state.handle then
    state.handle.cancel()
  end
  states[buf] = nil
  view.clear(buf)
end

--- Draw what is left of the chosen offer, or nothing.
---@param buf integer
---@return boolean whether something is shown
local function redraw(buf)
  local offer, left = current(buf)
  if not offer or not left or menus.is_open() or not is_inserting() then
    view.clear(buf)
    return false
  end
  local state = state_of(buf)
  local hint = state.chosen and ("(%d/%d)"):format(state.index, #state.offers) or nil
  local row, col = cursor()
  view.show(buf, row, col, left, hint)
  return true
end

---@param buf integer
---@param client vim.lsp.Client
---@param items lsp.InlineCompletionItem[]
---@return lacuna.ghost.Offer[]
local function offers_from(buf, client, items)
  local row, col, line = cursor()
  local found = {}
  for _, item in ipairs(items) do
    local first, start, stop = row, col, col
    if item.range then
      first, start = positions.to_bytes(buf, item.range.start, client.offset_encoding)
      _, stop = positions.to_bytes(buf, item.range["end"], client.offset_encoding)
    end
    local offer = offers.new(first, start, stop, col, line, item)
    if offers.left(offer, row, col, line) then
      found[#found + 1] = offer
    end
  end
  return found
end

---@param buf integer
---@param trigger integer of the specification's kinds
---@param then_do? fun(state: lacuna.ghost.State)
local function ask(buf, trigger, then_do)
  local client = clients.of(buf)
  if not client or not client:supports_method(protocol.INLINE_COMPLETION, buf) then
    return
  end
  local state = state_of(buf)
  if state.handle then
    state.handle.cancel()
  end
  local row, col = cursor()
  local here = place(buf)
  state.asked_at = here
  local params = {
    textDocument = { uri = vim.uri_from_bufnr(buf) },
    position = positions.to_lsp(buf, row, col, client.offset_encoding),
    context = { triggerKind = trigger },
  }
  state.handle = requests.send(client, protocol.INLINE_COMPLETION, params, buf, function(outcome)
    if states[buf] ~= state or state.asked_at ~= here then
      return
    end
    state.handle = nil
    local result = outcome.kind == "result" and outcome.result or {}
    if #(result.items or result) == 0 and not (is_told[client.id] and status.is_ready(client.id)) then
      unserved[buf] = true
    end
    if not is_inserting() or buf ~= vim.api.nvim_get_current_buf() or place(buf) ~= here then
      return
    end
    state.offers, state.index, state.chosen = offers_from(buf, client, result.items or result), 1, false
    if then_do then
      then_do(state)
    end
    redraw(buf)
  end)
end

--- Whether ghost text may come by itself in a buffer now.
---@param buf integer
---@return boolean
function M.is_wanted(buf)
  return options.get().ghost_text
    and vim.b[buf].lacuna ~= false
    and clients.is_text(buf)
    and not pause.is_paused(buf)
    and not builtin.is_on(buf)
    -- What a macro does is not typing.
    and vim.fn.reg_executing() == ""
end

--- The text or the cursor moved in insert mode.
---@param buf integer
function M.moved(buf)
  if not M.is_wanted(buf) or not is_inserting() then
    forget(buf)
    return
  end
  local here = place(buf)
  local state = state_of(buf)
  if state.dismissed == here then
    return
  end
  state.dismissed = nil
  if redraw(buf) then
    -- What was on its way was asked about another place.
    if state.handle and state.asked_at ~= here then
      state.handle.cancel()
      state.handle = nil
    end
    return
  end
  if state.asked_at == here or menus.is_open() then
    return
  end
  state.offers, state.index, state.chosen = {}, 1, false
  ask(buf, protocol.AUTOMATIC)
end

--- Insert mode ended, or the buffer was left.
M.left = forget

--- Whether there is something to accept.
---@return boolean
function M.is_shown()
  local buf = vim.api.nvim_get_current_buf()
  if builtin.is_on(buf) then
    return builtin.is_shown(buf)
  end
  local _, left = current(buf)
  return left ~= nil and vim.bo[buf].modifiable and state_of(buf).dismissed ~= place(buf) and is_inserting()
end

---@param buf integer
---@param row integer
---@param col integer
---@param stop integer
---@param text string
local function insert(buf, row, col, stop, text)
  local lines = vim.split(text, "\n", { plain = true })
  vim.api.nvim_buf_set_text(buf, row, col, row, stop, lines)
  local last = #lines[#lines] + (#lines == 1 and col or 0)
  vim.api.nvim_win_set_cursor(0, { row + #lines, last })
end

---@param buf integer
---@param offer lacuna.ghost.Offer
local function tell_accepted(buf, offer)
  local client = clients.of(buf)
  if client and offer.command then
    client:exec_cmd(offer.command, { bufnr = buf }, function() end)
  end
end

--- Insert a part of what is shown. The rest of it stays.
---@param buf integer
---@param offer lacuna.ghost.Offer
---@param left lacuna.ghost.Left
---@param part string
local function accept_part(buf, offer, left, part)
  local row, col = cursor()
  local remaining = left.text:sub(#part + 1)
  local keeps_rest = left.rest ~= "" and offers.around({ text = remaining, rest = left.rest }) ~= nil
  local rest = keeps_rest and left.rest or ""
  insert(buf, row, col, keeps_rest and col or col + #left.rest, part)
  local state = state_of(buf)
  local new_row, new_col = cursor()
  state.offers = {
    { row = new_row, col = new_col, text = remaining, rest = rest, behind = offer.behind, command = offer.command },
  }
  state.index, state.chosen = 1, false
  if builtin.is_on(buf) then
    forget(buf)
  else
    redraw(buf)
  end
end

---@param buf integer
---@param part "all"|"word"|"line"
---@param offer lacuna.ghost.Offer
---@param left lacuna.ghost.Left
local function put_in(buf, part, offer, left)
  local piece = part == "word" and offers.first_word(left.text) or part == "line" and offers.first_line(left.text)
  if piece and piece ~= "" and piece ~= left.text then
    accept_part(buf, offer, left, piece)
    return
  end
  local row, col = cursor()
  forget(buf)
  insert(buf, row, col, col + #left.rest, left.text)
  tell_accepted(buf, offer)
end

--- Put in what is shown, all of it or its first word or line.
---@param part "all"|"word"|"line"
---@return boolean whether there was something
function M.accept(part)
  local buf = vim.api.nvim_get_current_buf()
  if not M.is_shown() then
    return false
  end
  if builtin.is_on(buf) then
    builtin.accept(function(offer, left)
      put_in(buf, part, offer, left)
    end)
    return true
  end
  local offer, left = current(buf)
  if offer and left then
    put_in(buf, part, offer, left)
  end
  return offer ~= nil
end

---@param state lacuna.ghost.State
---@param step integer
local function turn(state, step)
  if #state.offers > 0 then
    state.index = (state.index - 1 + step) % #state.offers + 1
    state.chosen = true
  end
end

--- Leaf through the alternatives; the server is asked for them the first time.
---@param step integer
function M.choose(step)
  local buf = vim.api.nvim_get_current_buf()
  if not is_inserting() or not clients.is_text(buf) then
    return
  end
  if builtin.is_on(buf) then
    builtin.choose(step)
    return
  end
  local state = state_of(buf)
  state.dismissed = nil
  if #state.offers > 1 and current(buf) then
    turn(state, step)
    redraw(buf)
    return
  end
  local had_one = current(buf) ~= nil
  ask(buf, protocol.INVOKED, function(answered)
    turn(answered, had_one and step or 0)
  end)
end

--- Take what is shown away, until something is typed.
---@return boolean whether there was something
function M.dismiss()
  local buf = vim.api.nvim_get_current_buf()
  local was_shown = M.is_shown()
  if builtin.is_on(buf) then
    builtin.dismiss(buf)
    return was_shown
  end
  forget(buf)
  if was_shown then
    state_of(buf).dismissed = place(buf)
  end
  return was_shown
end

--- A server knows its settings, or its engine is ready: what was typed before is asked about now.
---@param client_id integer
---@param what "settings"|"engine"
function M.ready(client_id, what)
  is_told[client_id] = is_told[client_id] or what == "settings" or nil
  local buf = vim.api.nvim_get_current_buf()
  local is_its_own = (clients.of(buf) or {}).id == client_id
  if unserved[buf] and is_told[client_id] and is_its_own and is_inserting() then
    unserved[buf] = nil
    state_of(buf).asked_at = nil
    M.moved(buf)
  end
end

---@param group integer
function M.listen(group)
  vim.api.nvim_create_autocmd({ "InsertEnter", "TextChangedI", "TextChangedP", "CursorMovedI", "CompleteDone" }, {
    group = group,
    callback = function(event)
      if clients.of(event.buf) then
        -- At InsertEnter and CompleteDone the mode and the menu are still on their way.
        if event.event == "InsertEnter" or event.event == "CompleteDone" then
          vim.schedule(function()
            if vim.api.nvim_get_current_buf() == event.buf then
              M.moved(event.buf)
            end
          end)
        else
          M.moved(event.buf)
        end
      elseif event.event == "TextChangedI" or event.event == "TextChangedP" then
        unserved[event.buf] = true
      end
    end,
  })
  vim.api.nvim_create_autocmd({ "InsertLeave", "BufLeave", "BufUnload", "LspDetach" }, {
    group = group,
    callback = function(event)
      if event.event ~= "LspDetach" then
        unserved[event.buf] = nil
      end
      M.left(event.buf)
    end,
  })
end

return M
