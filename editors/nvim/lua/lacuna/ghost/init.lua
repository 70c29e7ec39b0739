--- Ghost text while typing: ask, show, type through, accept, choose, dismiss.
---
--- One state for each buffer. The newest request wins; what it brings is fitted to what stands at the cursor then, so
--- an answer that comes late shows nothing wrong.

local acceptance = require("lacuna.ghost.acceptance")
local builtin = require("lacuna.ghost.builtin")
local clients = require("lacuna.clients")
local cursor = require("lacuna.ghost.cursor")
local menus = require("lacuna.ghost.menus")
local offers = require("lacuna.ghost.offer")
local options = require("lacuna.options")
local pause = require("lacuna.pause")
local protocol = require("lacuna.protocol")
local question = require("lacuna.ghost.question")
local unserved = require("lacuna.ghost.unserved")
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

---@param buf integer
---@return lacuna.ghost.State
local function state_of(buf)
  states[buf] = states[buf] or { offers = {}, index = 1, chosen = false }
  return states[buf]
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
  local left = offer and offers.left(offer, cursor.at())
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
  if not offer or not left or menus.is_open() or not cursor.is_inserting() then
    view.clear(buf)
    return false
  end
  local state = state_of(buf)
  local hint = state.chosen and ("(%d/%d)"):format(state.index, #state.offers) or nil
  local row, col = cursor.at()
  view.show(buf, row, col, left, hint)
  return true
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
  local here = cursor.place(buf)
  state.asked_at = here
  state.handle = question.ask(buf, client, trigger, function(items)
    if states[buf] ~= state or state.asked_at ~= here then
      return
    end
    state.handle = nil
    if #items == 0 then
      unserved.came_empty(buf, client.id)
    end
    if not cursor.is_inserting() or buf ~= vim.api.nvim_get_current_buf() or cursor.place(buf) ~= here then
      return
    end
    state.offers, state.index, state.chosen = question.offers_of(buf, client, items), 1, false
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
  if not M.is_wanted(buf) or not cursor.is_inserting() then
    forget(buf)
    return
  end
  local here = cursor.place(buf)
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
  local is_dismissed = state_of(buf).dismissed == cursor.place(buf)
  return left ~= nil and vim.bo[buf].modifiable and not is_dismissed and cursor.is_inserting()
end

---@param buf integer
---@param part lacuna.ghost.Part
---@param offer lacuna.ghost.Offer
---@param left lacuna.ghost.Left
local function put_in(buf, part, offer, left)
  local rest = acceptance.put_in(buf, part, offer, left)
  if not rest or builtin.is_on(buf) then
    forget(buf)
    return
  end
  local state = state_of(buf)
  state.offers, state.index, state.chosen = { rest }, 1, false
  redraw(buf)
end

--- Put in what is shown, all of it or its first word or line.
---@param part lacuna.ghost.Part
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
  if not cursor.is_inserting() or not clients.is_text(buf) then
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
    state_of(buf).dismissed = cursor.place(buf)
  end
  return was_shown
end

--- A server knows its settings, or its engine is ready: what was typed before is asked about now.
---@param client_id integer
---@param what "settings"|"engine"
function M.ready(client_id, what)
  unserved.ready(client_id, what)
  local buf = vim.api.nvim_get_current_buf()
  local is_its_own = (clients.of(buf) or {}).id == client_id
  if is_its_own and cursor.is_inserting() and unserved.take(buf, client_id) then
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
        unserved.note(event.buf)
      end
    end,
  })
  vim.api.nvim_create_autocmd({ "InsertLeave", "BufLeave", "BufUnload", "LspDetach" }, {
    group = group,
    callback = function(event)
      if event.event ~= "LspDetach" then
        unserved.forget(event.buf)
      end
      M.left(event.buf)
    end,
  })
end

return M
