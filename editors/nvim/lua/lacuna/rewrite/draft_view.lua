--- A selection on its way from noise to text: drawn over the lines, which stay as they are.

local positions = require("lacuna.positions")
local tabs = require("lacuna.tabs")

local M = {}

local NAMESPACE = vim.api.nvim_create_namespace("lacuna.draft")
local SETTLED, UNDECIDED, HINT = "LacunaSettled", "LacunaUndecided", "LacunaHint"

---@alias lacuna.Chunks [string, string?][]

--- The lines of a draft in chunks, with what stands before and behind the selection in its lines.
---@param text string
---@param settled integer code points
---@param before string
---@param behind string
---@return lacuna.Chunks[]
local function lines_of(text, settled, before, behind)
  local border = positions.code_points(text, settled)
  local pieces = { { before }, { text:sub(1, border), SETTLED }, { text:sub(border + 1), UNDECIDED }, { behind } }
  local lines = { {} }
  for _, piece in ipairs(pieces) do
    for number, part in ipairs(positions.lines_of(piece[1])) do
      if number > 1 then
        lines[#lines + 1] = {}
      end
      if part ~= "" then
        table.insert(lines[#lines], { part, piece[2] })
      end
    end
  end
  return lines
end

--- Chunks without tabs, and with blanks behind them up to `width` columns.
---@param chunks lacuna.Chunks
---@param width integer
---@param tabstop integer
---@return lacuna.Chunks
local function drawn(chunks, width, tabstop)
  local column, found = 0, {}
  for _, chunk in ipairs(chunks) do
    local text = tabs.expanded(chunk[1], column, tabstop)
    column = column + vim.api.nvim_strwidth(text)
    found[#found + 1] = { text, chunk[2] }
  end
  found[#found + 1] = { (" "):rep(math.max(width - column, 0)) }
  return found
end

---@param job lacuna.rewrite.Job
function M.clear(job)
  for _, mark in ipairs(job.draft_marks or {}) do
    pcall(vim.api.nvim_buf_del_extmark, job.buf, NAMESPACE, mark)
  end
  job.draft_marks = {}
end

---@param job lacuna.rewrite.Job
---@param row integer
---@param mark vim.api.keyset.set_extmark
local function put(job, row, mark)
  job.draft_marks[#job.draft_marks + 1] = vim.api.nvim_buf_set_extmark(job.buf, NAMESPACE, row, 0, mark)
end

--- What goes on, in a line of its own below: at the right of a line it would vanish where there is no room.
---@param hint string
---@return lacuna.Chunks
local function hint_line(hint)
  return { { hint, HINT } }
end

--- Before the first draft: the selection is undecided as a whole.
---@param job lacuna.rewrite.Job
---@param hint string
function M.begin(job, hint)
  M.clear(job)
  job.region:paint(UNDECIDED)
  put(job, job.region:bounds().end_row, { virt_lines = { hint_line(hint) } })
end

---@param job lacuna.rewrite.Job
---@param draft lacuna.DraftParams
---@param hint string
function M.show(job, draft, hint)
  M.clear(job)
  local at = job.region:bounds()
  local tabstop = vim.bo[job.buf].tabstop
  local old = vim.api.nvim_buf_get_lines(job.buf, at.row, at.end_row + 1, false)
  local lines = lines_of(draft.text, draft.settled, old[1]:sub(1, at.col), old[#old]:sub(at.end_col + 1))
  for number, line in ipairs(old) do
    put(job, at.row + number - 1, {
      virt_text = drawn(lines[number] or {}, tabs.width(line, 0, tabstop), tabstop),
      virt_text_pos = "overlay",
      hl_mode = "replace",
    })
  end
  local below = vim.tbl_map(function(chunks)
    return drawn(chunks, 0, tabstop)
  end, vim.list_slice(lines, #old + 1))
  below[#below + 1] = hint_line(hint)
  put(job, at.end_row, { virt_lines = below })
end

return M
