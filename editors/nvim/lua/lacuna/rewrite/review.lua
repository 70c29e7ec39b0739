--- The diff of a rewrite in the buffer, and what happens to each of its changes. Nothing is in the text before a person
--- accepts it.

local changes = require("lacuna.rewrite.changes")
local notice = require("lacuna.notice")
local Region = require("lacuna.rewrite.region")
local tabs = require("lacuna.tabs")

---@class lacuna.rewrite.Proposal a change that waits for its verdict
---@field region lacuna.rewrite.Region
---@field text string[]
---@field marks integer[]

local M = {}

local NAMESPACE = vim.api.nvim_create_namespace("lacuna.review")
local GONE, GONE_TEXT, COME, HINT = "LacunaDelete", "LacunaDeleteText", "LacunaAdd", "LacunaHint"

---@param buf integer
---@param proposal lacuna.rewrite.Proposal
local function undraw(buf, proposal)
  for _, mark in ipairs(proposal.marks) do
    pcall(vim.api.nvim_buf_del_extmark, buf, NAMESPACE, mark)
  end
  proposal.marks = {}
end

---@param buf integer
---@param proposal lacuna.rewrite.Proposal
local function draw(buf, proposal)
  local at = proposal.region:bounds()
  local old = vim.api.nvim_buf_get_lines(buf, at.row, at.end_row + 1, false)
  local diff = changes.in_lines(old, { bounds = at, text = proposal.text })
  local tabstop = vim.bo[buf].tabstop
  local function put(row, col, mark)
    proposal.marks[#proposal.marks + 1] = vim.api.nvim_buf_set_extmark(buf, NAMESPACE, row, col, mark)
  end
  for row = diff.row, diff.row + diff.gone - 1 do
    put(row, 0, { line_hl_group = GONE })
  end
  if diff.gone > 0 and (at.row ~= at.end_row or at.col ~= at.end_col) then
    put(at.row, at.col, { end_row = at.end_row, end_col = at.end_col, hl_group = GONE_TEXT, priority = 5000 })
  end
  if #diff.come == 0 then
    return
  end
  local lines = vim.tbl_map(function(line)
    local text = tabs.expanded(line, 0, tabstop)
    -- A line's background reaches to the window's border.
    return { { text .. (" "):rep(vim.o.columns - vim.api.nvim_strwidth(text)), COME } }
  end, diff.come)
  local below = diff.row + diff.gone - 1
  put(math.max(below, 0), 0, { virt_lines = lines, virt_lines_above = below < 0 })
end

--- Whether a window shows the first line of a buffer's stretch and not what stands below its last one.
---@param buf integer
---@param at lacuna.rewrite.Bounds
---@return boolean
local function is_end_hidden(buf, at)
  return vim.iter(vim.fn.win_findbuf(buf)):any(function(win)
    local top = vim.fn.line("w0", win) - 1
    if top > at.end_row or vim.fn.line("w$", win) - 1 < at.row then
      return false
    end
    -- Lines below the last one are counted with the one that follows.
    local stop = at.end_row + 1 < vim.api.nvim_buf_line_count(buf) and at.end_row + 1 or nil
    local height = vim.api.nvim_win_text_height(win, { start_row = top, end_row = stop }).all
    return height - (stop and 1 or 0) > vim.api.nvim_win_get_height(win)
  end)
end

--- What can be done, in a line of its own below everything; where that is below the screen, at the first line as well.
---@param job lacuna.rewrite.Job
function M.draw_hint(job)
  for _, mark in ipairs(job.hint_marks or {}) do
    pcall(vim.api.nvim_buf_del_extmark, job.buf, NAMESPACE, mark)
  end
  job.hint_marks = {}
  if #job.proposals == 0 then
    return
  end
  local count = #job.proposals
  local text = ("%d change%s%s"):format(count, count == 1 and "" or "s", job.review_keys)
  local at = job.region:bounds()
  local last = at.end_row
  local line = vim.api.nvim_buf_get_lines(job.buf, last, last + 1, false)[1] or ""
  -- Lines below the same line stand in the order of their marks, and this one is to be the last.
  local below = { virt_lines = { { { text, HINT } } } }
  job.hint_marks = { vim.api.nvim_buf_set_extmark(job.buf, NAMESPACE, last, #line, below) }
  if is_end_hidden(job.buf, at) then
    local first = vim.api.nvim_buf_get_lines(job.buf, at.row, at.row + 1, false)[1] or ""
    local width = tabs.width(first, 0, vim.bo[job.buf].tabstop) + vim.api.nvim_strwidth(text) + 2
    local win = vim.fn.bufwinid(job.buf)
    local has_room = win ~= -1 and width <= vim.api.nvim_win_get_width(win) - vim.fn.getwininfo(win)[1].textoff
    local mark = has_room and { virt_text = { { "  " .. text, HINT } }, virt_text_pos = "eol" } or below
    job.hint_marks[2] = vim.api.nvim_buf_set_extmark(job.buf, NAMESPACE, at.row, 0, mark)
  end
end

---@param job lacuna.rewrite.Job
---@param found lacuna.rewrite.Change[]
function M.open(job, found)
  job.proposals = vim.tbl_map(function(change)
    return { region = Region.new(job.buf, change.bounds), text = change.text, marks = {} }
  end, found)
  for _, proposal in ipairs(job.proposals) do
    draw(job.buf, proposal)
  end
  M.draw_hint(job)
end

--- Take the diff away; the text stays as it is.
---@param job lacuna.rewrite.Job
function M.close(job)
  for _, proposal in ipairs(job.proposals or {}) do
    undraw(job.buf, proposal)
    proposal.region:delete()
  end
  job.proposals = {}
  M.draw_hint(job)
end

--- Some changes went: say which of them nobody chose to lose, and draw what is left to do.
---@param job lacuna.rewrite.Job
---@param left_out integer
local function settle(job, left_out)
  if left_out > 0 then
    local how_many = ("%d change%s"):format(left_out, left_out == 1 and " was" or "s were")
    notice.tell(how_many .. " left out: the text there is another one now", vim.log.levels.WARN)
  end
  M.draw_hint(job)
end

---@param job lacuna.rewrite.Job
---@param proposal lacuna.rewrite.Proposal
local function drop(job, proposal)
  undraw(job.buf, proposal)
  proposal.region:delete()
  job.proposals = vim.tbl_filter(function(other)
    return other ~= proposal
  end, job.proposals)
end

--- Make one change. Accepted one after the other, the changes of a rewrite are one step to undo.
---@param job lacuna.rewrite.Job
---@param proposal lacuna.rewrite.Proposal
---@return boolean is_made
local function apply(job, proposal)
  if not proposal.region:is_unchanged() then
    return false
  end
  local change = { bounds = proposal.region:bounds(), text = proposal.text }
  local at, all = change.bounds, job.region:bounds()
  if vim.api.nvim_buf_get_changedtick(job.buf) == job.accepted_tick then
    -- Not after an undo: there is nothing to join then.
    pcall(vim.api.nvim_buf_call, job.buf, function()
      vim.cmd.undojoin()
    end)
  end
  vim.api.nvim_buf_set_text(job.buf, at.row, at.col, at.end_row, at.end_col, change.text)
  job.accepted_tick = vim.api.nvim_buf_get_changedtick(job.buf)
  local end_row, end_col = changes.shifted(all.end_row, all.end_col, change)
  job.region:place({ row = all.row, col = all.col, end_row = end_row, end_col = end_col })
  return true
end

--- Accept or reject some of the changes.
---@param job lacuna.rewrite.Job
---@param chosen lacuna.rewrite.Proposal[]
---@param is_accepted boolean
function M.decide(job, chosen, is_accepted)
  local stale = 0
  -- From the end, so that no change moves another one.
  for number = #chosen, 1, -1 do
    if is_accepted and not apply(job, chosen[number]) then
      stale = stale + 1
    end
    drop(job, chosen[number])
  end
  settle(job, stale)
end

--- The text was changed: a change of what is not there any more goes, the others are drawn around what is there now.
---@param job lacuna.rewrite.Job
function M.edited(job)
  local stale = 0
  for _, proposal in ipairs(job.proposals) do
    if proposal.region:is_unchanged() then
      undraw(job.buf, proposal)
      draw(job.buf, proposal)
    else
      stale = stale + 1
      drop(job, proposal)
    end
  end
  settle(job, stale)
end

---@param job lacuna.rewrite.Job
---@param is_it fun(at: lacuna.rewrite.Bounds): boolean
---@return lacuna.rewrite.Proposal? the first of that kind, else the first
local function first_where(job, is_it)
  local found = vim.iter(job.proposals):find(function(proposal)
    return is_it(proposal.region:bounds())
  end)
  return found or job.proposals[1]
end

--- The change a row belongs to, else the next one below, else the first.
---@param job lacuna.rewrite.Job
---@param row integer
---@return lacuna.rewrite.Proposal?
function M.at(job, row)
  return first_where(job, function(at)
    return at.end_row >= row
  end)
end

--- The first change below a row, else the first.
---@param job lacuna.rewrite.Job
---@param row integer
---@return lacuna.rewrite.Proposal?
function M.below(job, row)
  return first_where(job, function(at)
    return at.row > row
  end)
end

return M
