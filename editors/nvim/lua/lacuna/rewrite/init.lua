--- Inline rewrite: ask for a selection, watch its drafts, judge the diff; again, otherwise, or not at all.

local board = require("lacuna.rewrite.board")
local changes = require("lacuna.rewrite.changes")
local clients = require("lacuna.clients")
local draft_view = require("lacuna.rewrite.draft_view")
local notice = require("lacuna.notice")
local options = require("lacuna.options")
local positions = require("lacuna.positions")
local protocol = require("lacuna.protocol")
local Region = require("lacuna.rewrite.region")
local requests = require("lacuna.requests")
local review = require("lacuna.rewrite.review")

local M = {}

--- What the keys do, in a word each, so that a line holds them all.
local WORDS = {
  accept_all = "all",
  accept_hunk = "this",
  reject_hunk = "not this",
  retry = "another",
  refine = "refine",
  cancel = "cancel",
}

--- Keys and what they do, for the hint; those that a person turned off are left out.
---@param names string[]
---@return string
local function key_hint(names)
  local keys = options.get().keys
  local parts = {}
  for _, name in ipairs(names) do
    local key = keys and keys[name]
    if key then
      parts[#parts + 1] = ("%s %s"):format(key, WORDS[name])
    end
  end
  return #parts > 0 and "  " .. table.concat(parts, "  ") or ""
end

--- End a job and take everything of it off the screen.
---@param job lacuna.rewrite.Job
local function finish(job)
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

---@param job lacuna.rewrite.Job
---@param result? lacuna.RewriteResult
---@param encoding string
local function answered(job, result, encoding)
  -- Null: the server has told why.
  if not result then
    finish(job)
    return
  end
  if not job.region:is_unchanged() then
    finish(job)
    notice.tell("the selection was changed meanwhile, so nothing came of its rewrite", vim.log.levels.WARN)
    return
  end
  local found = changes.of(job.buf, result, job.region:bounds(), encoding)
  if type(result.note) == "string" and result.note ~= "" then
    notice.tell(result.note)
  end
  if #found == 0 then
    finish(job)
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
    finish(job)
    if is_news then
      notice.tell("the rewrite was ended by the server; ask again", vim.log.levels.WARN)
    end
  elseif outcome.kind == "error" then
    finish(job)
    local is_modified = outcome.error.code == protocol.CONTENT_MODIFIED
    notice.tell(
      is_modified and "the selection was changed meanwhile, so nothing came of its rewrite" or outcome.error.message,
      is_modified and vim.log.levels.WARN or vim.log.levels.ERROR
    )
  else
    answered(job, outcome.result, client.offset_encoding)
  end
end

--- What stands on the lines of a new job goes: two differences of the same lines cannot be judged.
---@param job lacuna.rewrite.Job
local function replace(job)
  local were_running = false
  local older = board.under(job)
  for _, other in ipairs(older) do
    were_running = were_running or other.phase == "asking"
    finish(other)
  end
  if #older > 0 then
    local what = were_running and "ended" or "taken away"
    notice.tell(("the rewrite that was on these lines is %s: the new one takes its place"):format(what))
  end
end

--- Send the request of a job, a new one or one more.
---@param job lacuna.rewrite.Job
local function ask(job)
  local client = clients.of(job.buf)
  if not client then
    finish(job)
    notice.tell("no server serves this buffer: `:checkhealth lacuna`", vim.log.levels.WARN)
    return
  end
  review.close(job)
  job.phase = "asking"
  job.client_id = client.id
  job.region.original = job.region:text()
  local at = job.region:bounds()
  draft_view.begin(job, "rewriting" .. key_hint({ "cancel" }))
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
    draft_view.show(job, params, ("rewriting %s"):format(steps) .. key_hint({ "cancel" }))
  end
end

--- What was typed at a prompt would stay on the command line.
local function clear_prompt()
  vim.api.nvim_echo({ { "" } }, false, {})
end

--- Words for a prompt that does not come: run as commands they would change the text.
local function drop_typed()
  while vim.fn.getchar(0) ~= 0 do
  end
end

--- Rewrite a stretch of the current buffer. Without an instruction a person is asked for one.
---@param bounds lacuna.rewrite.Bounds
---@param instruction? string
function M.start(bounds, instruction)
  local buf = vim.api.nvim_get_current_buf()
  local client, problem = clients.wait(buf)
  if not client then
    notice.tell(problem or "", vim.log.levels.WARN)
    drop_typed()
    return
  end
  local region = Region.new(buf, bounds)
  if table.concat(region.original):match("^%s*$") then
    region:delete()
    notice.tell("there is nothing to rewrite: select some text first")
    drop_typed()
    return
  end
  local function begin(words)
    clear_prompt()
    if not words or vim.trim(words) == "" or not vim.api.nvim_buf_is_valid(buf) then
      region:delete()
      return
    end
    local job = board.add({
      id = 0,
      buf = buf,
      client_id = client.id,
      kind = "rewrite",
      phase = "asking",
      token = "",
      region = region,
      instructions = { vim.trim(words) },
      seed = 0,
      proposals = {},
      draft_marks = {},
      review_keys = key_hint({ "accept_all", "accept_hunk", "reject_hunk", "retry", "refine", "cancel" }),
    })
    replace(job)
    ask(job)
  end
  if instruction then
    begin(instruction)
    return
  end
  region:paint("Visual")
  vim.ui.input({ prompt = "Rewrite: " }, begin)
end

---@param phase? "asking"|"review"
---@return lacuna.rewrite.Job?
---@return integer row
local function here(phase)
  local row = vim.api.nvim_win_get_cursor(0)[1] - 1
  local job = board.at(vim.api.nvim_get_current_buf(), row, phase)
  if not job then
    notice.tell(phase == "review" and "there is no rewrite to judge in this buffer" or "nothing runs in this buffer")
  end
  return job, row
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
  if #job.proposals == 0 then
    finish(job)
  end
end

--- Accept every change of the rewrite at the cursor.
function M.accept_all()
  local job = here("review")
  if job then
    decide(job, job.proposals, true)
  end
end

--- Accept or reject the change at the cursor, or the next one.
---@param is_accepted boolean
function M.judge(is_accepted)
  local job, row = here("review")
  local proposal = job and review.at(job, row)
  if job and proposal then
    decide(job, { proposal }, is_accepted)
  end
end

--- Go to the next change.
function M.next_hunk()
  local job, row = here("review")
  local proposal = job and review.below(job, row)
  if proposal then
    local at = proposal.region:bounds()
    vim.cmd.normal({ "m'", bang = true })
    vim.api.nvim_win_set_cursor(0, { at.row + 1, at.col })
  end
end

--- The same instruction once more, and another text.
function M.retry()
  local job = here("review")
  if job then
    job.seed = job.seed + 1
    ask(job)
  end
end

--- One more instruction, with those before.
---@param instruction? string
function M.refine(instruction)
  local job = here("review")
  if not job then
    return
  end
  local function go_on(words)
    clear_prompt()
    if words and vim.trim(words) ~= "" and job.phase == "review" and #job.proposals > 0 then
      job.instructions[#job.instructions + 1] = vim.trim(words)
      ask(job)
    end
  end
  if instruction then
    go_on(instruction)
  else
    vim.ui.input({ prompt = "Refine: " }, go_on)
  end
end

--- End what runs or waits at the cursor; what was accepted stays.
function M.cancel()
  local job = here()
  if job then
    finish(job)
  end
end

--- The server is about to go: nothing that runs will be answered.
function M.end_all_running()
  local running = board.running()
  for _, job in ipairs(running) do
    finish(job)
  end
  if #running > 0 then
    local what = #running == 1 and ("the %s that ran is"):format(running[1].kind) or "what ran is"
    notice.tell(what .. " ended by the restart; ask again when the server is back", vim.log.levels.WARN)
  end
end

--- Show that an action runs on a stretch of a buffer. What comes back takes the sign away again and must be called.
---@param buf integer
---@param client vim.lsp.Client
---@param bounds lacuna.rewrite.Bounds
---@param title string
---@return lacuna.rewrite.Job
---@return fun() finished
function M.show_action(buf, client, bounds, title)
  local job = board.add({
    id = 0,
    buf = buf,
    client_id = client.id,
    kind = "fill",
    phase = "asking",
    token = "",
    region = Region.new(buf, bounds),
    instructions = {},
    seed = 0,
    proposals = {},
    draft_marks = {},
    review_keys = "",
  })
  draft_view.begin(job, title .. key_hint({ "cancel" }))
  return job, function()
    finish(job)
  end
end

--- The text of a buffer was changed, by whomever.
---@param buf integer
local function edited(buf)
  for _, job in ipairs(board.of(buf)) do
    if job.phase == "review" then
      review.edited(job)
      if #job.proposals == 0 then
        finish(job)
      end
    end
  end
end

---@param group integer
function M.listen(group)
  vim.api.nvim_create_autocmd({ "TextChanged", "TextChangedI", "TextChangedP" }, {
    group = group,
    callback = function(event)
      edited(event.buf)
    end,
  })
  vim.api.nvim_create_autocmd({ "WinScrolled", "WinResized" }, {
    group = group,
    callback = function()
      for _, win in ipairs(vim.api.nvim_tabpage_list_wins(0)) do
        vim.tbl_map(review.draw_hint, board.of(vim.api.nvim_win_get_buf(win)))
      end
    end,
  })
  vim.api.nvim_create_autocmd("BufUnload", {
    group = group,
    callback = function(event)
      for _, job in ipairs(board.of(event.buf)) do
        finish(job)
      end
    end,
  })
end

return M
