--- A rewrite's question to the server, its drafts on their way, and what becomes of the answer.

local board = require("lacuna.rewrite.board")
local changes = require("lacuna.rewrite.changes")
local clients = require("lacuna.clients")
local draft_view = require("lacuna.rewrite.draft_view")
local hints = require("lacuna.rewrite.hints")
local life = require("lacuna.rewrite.life")
local notice = require("lacuna.notice")
local positions = require("lacuna.positions")
local protocol = require("lacuna.protocol")
local requests = require("lacuna.requests")
local review = require("lacuna.rewrite.review")

local M = {}

local CHANGED = "the selection was changed meanwhile, so nothing came of its rewrite"

---@param job lacuna.rewrite.Job
---@param result? lacuna.RewriteResult
---@param encoding string
local function answered(job, result, encoding)
  -- Null: the server has told why.
  if not result then
    life.finish(job)
    return
  end
  if not job.region:is_unchanged() then
    life.finish(job)
    notice.tell(CHANGED, vim.log.levels.WARN)
    return
  end
  local found = changes.of(job.buf, result, job.region:bounds(), encoding)
  if type(result.note) == "string" and result.note ~= "" then
    notice.tell(result.note)
  end
  if #found == 0 then
    life.finish(job)
    notice.tell("nothing to change here")
    return
  end
  job.phase = "review"
  draft_view.clear(job)
  job.region:paint(nil)
  review.open(job, found)
end

---@param job lacuna.rewrite.Job
---@param client vim.lsp.Client
---@param outcome lacuna.Outcome
local function came_back(job, client, outcome)
  job.handle = nil
  if not vim.api.nvim_buf_is_valid(job.buf) or outcome.kind == "cancelled" then
    -- What a person ends is over before its outcome comes.
    local is_news = board.has(job)
    life.finish(job)
    if is_news then
      notice.tell("the rewrite was ended by the server; ask again", vim.log.levels.WARN)
    end
  elseif outcome.kind == "error" then
    life.finish(job)
    local is_modified = outcome.error.code == protocol.CONTENT_MODIFIED
    notice.tell(
      is_modified and CHANGED or outcome.error.message,
      is_modified and vim.log.levels.WARN or vim.log.levels.ERROR
    )
  else
    answered(job, outcome.result, client.offset_encoding)
  end
end

--- Send the request of a job, a new one or one more.
---@param job lacuna.rewrite.Job
function M.ask(job)
  local client = clients.of(job.buf)
  if not client then
    life.finish(job)
    notice.tell("no server serves this buffer: `:checkhealth lacuna`", vim.log.levels.WARN)
    return
  end
  review.close(job)
  job.phase = "asking"
  job.client_id = client.id
  job.region.original = job.region:text()
  local at = job.region:bounds()
  draft_view.begin(job, "rewriting" .. hints.running())
  ---@type lacuna.RewriteParams
  local params = {
    textDocument = clients.document(job.buf),
    range = {
      start = positions.to_lsp(job.buf, at.row, at.col, client.offset_encoding),
      ["end"] = positions.to_lsp(job.buf, at.end_row, at.end_col, client.offset_encoding),
    },
    instruction = table.concat(job.instructions, "\n"),
    seed = job.seed,
    workDoneToken = board.new_token(job),
  }
  job.handle = requests.send(client, protocol.REWRITE, params, job.buf, function(outcome)
    came_back(job, client, outcome)
  end)
end

--- Handler of `lacuna/draft`.
---@param params lacuna.DraftParams
---@param client_id integer
function M.hear(params, client_id)
  local job = board.of_draft(params, client_id)
  if job and job.kind == "rewrite" and vim.api.nvim_buf_is_valid(job.buf) then
    local steps = params.steps > 0 and ("%d/%d"):format(params.step, params.steps) or tostring(params.step)
    draft_view.show(job, params, ("rewriting %s"):format(steps) .. hints.running())
  end
end

return M
