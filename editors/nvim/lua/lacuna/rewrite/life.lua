--- How a rewrite or a fill begins, makes room, and ends.

local board = require("lacuna.rewrite.board")
local draft_view = require("lacuna.rewrite.draft_view")
local hints = require("lacuna.rewrite.hints")
local notice = require("lacuna.notice")
local review = require("lacuna.rewrite.review")

local M = {}

---@param kind "rewrite"|"fill"
---@param client_id integer
---@param region lacuna.rewrite.Region
---@param instructions string[]
---@return lacuna.rewrite.Job
function M.begin(kind, client_id, region, instructions)
  return board.add({
    id = 0,
    buf = region.buf,
    client_id = client_id,
    kind = kind,
    phase = "asking",
    token = "",
    region = region,
    instructions = instructions,
    seed = 0,
    proposals = {},
    draft_marks = {},
    review_keys = hints.review(),
  })
end

--- End a job and take everything of it off the screen.
---@param job lacuna.rewrite.Job
function M.finish(job)
  board.remove(job)
  if job.handle then
    job.handle.cancel()
    job.handle = nil
  end
  if vim.api.nvim_buf_is_valid(job.buf) then
    draft_view.clear(job)
    review.close(job)
    job.region:delete()
  end
end

--- The rewrites on some rows go: two differences of the same lines cannot be judged.
---@param buf integer
---@param stretches lacuna.rewrite.Rows[]
---@param successor string what takes their place, in words
---@param newcomer? lacuna.rewrite.Job that stays
function M.make_room(buf, stretches, successor, newcomer)
  local were_running = false
  local older = board.rewrites_on(buf, stretches, newcomer)
  for _, other in ipairs(older) do
    were_running = were_running or other.phase == "asking"
    M.finish(other)
  end
  if #older > 0 then
    local what = were_running and "ended" or "taken away"
    notice.tell(("the rewrite that was on these lines is %s: %s takes its place"):format(what, successor))
  end
end

--- The server is about to go: nothing that runs will be answered.
function M.end_all_running()
  local running = board.running()
  for _, job in ipairs(running) do
    M.finish(job)
  end
  if #running > 0 then
    local what = #running == 1 and ("the %s that ran is"):format(running[1].kind) or "what ran is"
    notice.tell(what .. " ended by the restart; ask again when the server is back", vim.log.levels.WARN)
  end
end

return M
