--- Inline rewrite: ask for a selection, watch its drafts, judge the diff; again, otherwise, or not at all.

local asking = require("lacuna.rewrite.asking")
local board = require("lacuna.rewrite.board")
local clients = require("lacuna.clients")
local draft_view = require("lacuna.rewrite.draft_view")
local hints = require("lacuna.rewrite.hints")
local judging = require("lacuna.rewrite.judging")
local life = require("lacuna.rewrite.life")
local notice = require("lacuna.notice")
local Region = require("lacuna.rewrite.region")
local review = require("lacuna.rewrite.review")

local M = {
  hear = asking.hear,
  accept_all = judging.accept_all,
  judge = judging.judge,
  next_hunk = judging.next_hunk,
  end_all_running = life.end_all_running,
  make_room = life.make_room,
}

--- Words for a prompt that does not come: run as commands they would change the text.
local function drop_typed()
  while vim.fn.getchar(0) ~= 0 do
  end
end

--- The instruction that was given, else the one a person is asked for.
---@param instruction? string
---@param prompt string
---@param with_words fun(words?: string) nil where nothing was said
local function with_instruction(instruction, prompt, with_words)
  local function said(words)
    -- What was typed at a prompt would stay on the command line.
    vim.api.nvim_echo({ { "" } }, false, {})
    words = words and vim.trim(words) or ""
    with_words(words ~= "" and words or nil)
  end
  if instruction then
    said(instruction)
  else
    vim.ui.input({ prompt = prompt }, said)
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
  if not instruction then
    region:paint("Visual")
  end
  with_instruction(instruction, "Rewrite: ", function(words)
    if not words or not vim.api.nvim_buf_is_valid(buf) then
      region:delete()
      return
    end
    local job = life.begin("rewrite", client.id, region, { words })
    life.make_room(buf, { region:bounds() }, "the new one", job)
    asking.ask(job)
  end)
end

--- The same instruction once more, and another text.
function M.retry()
  local job = judging.job_here("review")
  if job then
    job.seed = job.seed + 1
    asking.ask(job)
  end
end

--- One more instruction, with those before.
---@param instruction? string
function M.refine(instruction)
  local job = judging.job_here("review")
  if not job then
    return
  end
  with_instruction(instruction, "Refine: ", function(words)
    if words and job.phase == "review" and #job.proposals > 0 then
      job.instructions[#job.instructions + 1] = words
      asking.ask(job)
    end
  end)
end

--- End what runs or waits at the cursor; what was accepted stays.
function M.cancel()
  local job = judging.job_here()
  if job then
    life.finish(job)
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
  local job = life.begin("fill", client.id, Region.new(buf, bounds), {})
  draft_view.begin(job, title .. hints.running())
  return job, function()
    life.finish(job)
  end
end

---@param group integer
function M.listen(group)
  vim.api.nvim_create_autocmd({ "TextChanged", "TextChangedI", "TextChangedP" }, {
    group = group,
    callback = function(event)
      judging.edited(event.buf)
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
        life.finish(job)
      end
    end,
  })
end

return M
