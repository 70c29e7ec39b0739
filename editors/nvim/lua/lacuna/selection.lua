--- What is selected, as a stretch of the buffer.

local M = {}

--- Whole lines, without the line end of the last.
---@param first integer from 0
---@param last integer from 0
---@return lacuna.rewrite.Bounds
function M.lines(first, last)
  local stop = vim.api.nvim_buf_get_lines(0, last, last + 1, false)[1] or ""
  return { row = first, col = 0, end_row = last, end_col = #stop }
end

--- What is selected in visual mode, which ends; a block counts as its lines. In another mode the cursor's line.
---@return lacuna.rewrite.Bounds
function M.take()
  local mode = vim.api.nvim_get_mode().mode
  local from, to = vim.fn.getpos("v"), vim.fn.getpos(".")
  if from[2] > to[2] or (from[2] == to[2] and from[3] > to[3]) then
    from, to = to, from
  end
  if mode:match("^[vV\22]") then
    vim.api.nvim_feedkeys(vim.keycode("<Esc>"), "nx", false)
  end
  if mode:sub(1, 1) ~= "v" then
    return M.lines(from[2] - 1, to[2] - 1)
  end
  local line = vim.fn.getline(to[2])
  -- The last character belongs to it with all of its bytes; behind the line's end there is none.
  local index = to[3] - 1
  local stop = index >= #line and #line or index + vim.str_utf_end(line, index + 1) + 1
  return {
    row = from[2] - 1,
    col = math.min(from[3] - 1, #vim.fn.getline(from[2])),
    end_row = to[2] - 1,
    end_col = stop,
  }
end

return M
