--- What a person does with a rewrite that waits for the verdict, and what edits of the text do to it.

local board = require("lacuna.rewrite.board")
local clients = require("lacuna.clients")
local life = require("lacuna.rewrite.life")
local notice = require("lacuna.notice")
local review = require("lacuna.rewrite.review")

local M = {}

--- The job a key is about, by the cursor; where there is none, that is told.
---@param phase? "asking"|"review"
---@return lacuna.rewrite.Job?
---@return integer row
function M.job_here(phase)
  local row = vim.api.nvim_win_get_cursor(0)[1] - 1
  local job = board.at(vim.api.nvim_get_current_buf(), row, phase)
  if not job then
    notice.tell(phase == "review" and "there is no rewrite to judge in this buffer" or "nothing runs in this buffer")
  end
  return job, row
end

--- A job of which nothing waits any more is over.
---@param job lacuna.rewrite.Job
local function finish_if_settled(job)
  if #job.proposals == 0 then
    life.finish(job)
  end
end

---@param job lacuna.rewrite.Job
---@param chosen lacuna.rewrite.Proposal[]
---@param is_accepted boolean
local function decide(job, chosen, is_accepted)
  if is_accepted and not vim.bo[job.buf].modifiable then
    notice.tell(clients.NOT_MODIFIABLE, vim.log.levels.WARN)
    return
  end
  review.decide(job, chosen, is_accepted)
  finish_if_settled(job)
end

--- Accept every change of the rewrite at the cursor.
function M.accept_all()
  local job = M.job_here("review")
  if job then
    decide(job, job.proposals, true)
  end
end

--- Accept or reject the change at the cursor, or the next one.
---@param is_accepted boolean
function M.judge(is_accepted)
  local job, row = M.job_here("review")
  local proposal = job and review.at(job, row)
  if job and proposal then
    decide(job, { proposal }, is_accepted)
  end
end

--- Go to the next change.
function M.next_hunk()
  local job, row = M.job_here("review")
  local proposal = job and review.below(job, row)
  if proposal then
    local at = proposal.region:bounds()
    vim.cmd.normal({ "m'", bang = true })
    vim.api.nvim_win_set_cursor(0, { at.row + 1, at.col })
  end
end

--- The text of a buffer was changed, by whomever.
---@param buf integer
function M.edited(buf)
  for _, job in ipairs(board.of(buf)) do
    if job.phase == "review" then
      review.edited(job)
      finish_if_settled(job)
    end
  end
end

return M
