--- The trace: how a hole is filled, step by step, as a page in the browser.

local cli = require("lacuna.cli")
local notice = require("lacuna.notice")

local M = {}

--- Fill at the cursor (the document stays as it is) and open the page that shows how.
function M.show()
  local buf = vim.api.nvim_get_current_buf()
  local at = vim.api.nvim_win_get_cursor(0)
  local line = vim.api.nvim_get_current_line()
  local column = vim.str_utfindex(line, "utf-32", math.min(at[2], #line), false) + 1
  local text = table.concat(vim.api.nvim_buf_get_lines(buf, 0, -1, false), "\n") .. "\n"
  local folder = vim.fs.joinpath(vim.fn.stdpath("cache"), "lacuna")
  vim.fn.mkdir(folder, "p")
  local name = vim.fs.basename(vim.api.nvim_buf_get_name(buf))
  local page = vim.fs.joinpath(folder, (name ~= "" and name or "untitled") .. ".trace.html")
  local place = ("%d:%d"):format(at[1], column)
  local arguments = { "trace", "-", "--at", place, "--out", page }
  if vim.bo[buf].filetype ~= "" then
    vim.list_extend(arguments, { "--language", vim.bo[buf].filetype })
  end
  notice.tell("tracing; the page opens when it is done")
  cli.run(arguments, { stdin = text }, function(done)
    if done.code ~= 0 then
      notice.tell(cli.complaint(done), vim.log.levels.ERROR)
      return
    end
    local _, problem = vim.ui.open(page)
    notice.tell(problem and ("the page is %s; it could not be opened: %s"):format(page, problem) or "traced: " .. page)
  end)
end

return M
