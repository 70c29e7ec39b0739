--- Ghost text on the screen: extmarks only, the buffer stays as it is.

local offers = require("lacuna.ghost.offer")
local tabs = require("lacuna.tabs")

local M = {}

local NAMESPACE = vim.api.nvim_create_namespace("lacuna.ghost")
local GHOST, REPLACED, HINT = "LacunaGhost", "LacunaReplaced", "LacunaHint"

---@param buf integer
function M.clear(buf)
  if vim.api.nvim_buf_is_valid(buf) then
    vim.api.nvim_buf_clear_namespace(buf, NAMESPACE, 0, -1)
  end
end

---@param text string
---@param column integer screen column it begins in
---@param tabstop integer
---@return [string, string][]? nil for nothing
local function chunk(text, column, tabstop)
  if text ~= "" then
    return { { tabs.expanded(text, column, tabstop), GHOST } }
  end
end

---@param buf integer
---@param row integer
---@param cursor integer byte column
---@param left lacuna.ghost.Left
---@param hint? string which of how many
function M.show(buf, row, cursor, left, hint)
  M.clear(buf)
  local tabstop = vim.bo[buf].tabstop
  local line = vim.api.nvim_buf_get_lines(buf, row, row + 1, false)[1] or ""
  local column = tabs.width(line:sub(1, cursor), 0, tabstop)
  local before, behind = offers.around(left)
  if not before or not behind then
    before, behind = left.text, ""
    vim.api.nvim_buf_set_extmark(buf, NAMESPACE, row, cursor, { end_col = cursor + #left.rest, hl_group = REPLACED })
  end
  local lines = vim.split(behind ~= "" and behind or before, "\n", { plain = true })
  local first = table.remove(lines, 1)
  local below = vim.tbl_map(function(text)
    return { { tabs.expanded(text, 0, tabstop), GHOST } }
  end, lines)
  if hint then
    local last = below[#below]
    if last then
      last[#last + 1] = { " " .. hint, HINT }
    end
  end
  local inline = behind ~= "" and before or first
  -- With the gravity it has by default it stands right of the cursor, and what is typed goes in front of it.
  local options = { virt_text_pos = "inline", hl_mode = "combine" }
  local at_cursor = chunk(inline, column, tabstop) or {}
  if hint and #below == 0 then
    at_cursor[#at_cursor + 1] = { " " .. hint, HINT }
  end
  local mark = vim.tbl_extend("force", options, { virt_text = #at_cursor > 0 and at_cursor or nil })
  mark.virt_lines = #below > 0 and below or nil
  vim.api.nvim_buf_set_extmark(buf, NAMESPACE, row, cursor, mark)
  local after_rest = behind ~= "" and chunk(first, column + tabs.width(inline .. left.rest, column, tabstop), tabstop)
  if after_rest then
    vim.api.nvim_buf_set_extmark(
      buf,
      NAMESPACE,
      row,
      cursor + #left.rest,
      vim.tbl_extend("force", options, { virt_text = after_rest })
    )
  end
end

return M
