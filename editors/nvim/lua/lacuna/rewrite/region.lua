--- A stretch of a buffer that follows edits around it.

---@class lacuna.rewrite.Bounds
---@field row integer
---@field col integer byte column
---@field end_row integer
---@field end_col integer exclusive

---@class lacuna.rewrite.Region
---@field buf integer
---@field mark integer
---@field original string[]
local Region = {}
Region.__index = Region

local NAMESPACE = vim.api.nvim_create_namespace("lacuna.region")

---@param buf integer
---@param bounds lacuna.rewrite.Bounds
---@return lacuna.rewrite.Region
function Region.new(buf, bounds)
  local region = setmetatable({ buf = buf }, Region)
  region:place(bounds)
  region.original = region:text()
  return region
end

--- Put the region somewhere else.
---@param bounds lacuna.rewrite.Bounds
---@param highlight? string
function Region:place(bounds, highlight)
  -- What is typed at its borders is outside.
  self.mark = vim.api.nvim_buf_set_extmark(self.buf, NAMESPACE, bounds.row, bounds.col, {
    id = self.mark,
    end_row = bounds.end_row,
    end_col = bounds.end_col,
    right_gravity = true,
    end_right_gravity = false,
    hl_group = highlight,
    hl_eol = false,
  })
end

--- Where it stands now; an insertion at an empty region leaves it in front of that.
---@return lacuna.rewrite.Bounds
function Region:bounds()
  local row, col, details =
    unpack(vim.api.nvim_buf_get_extmark_by_id(self.buf, NAMESPACE, self.mark, { details = true }))
  local end_row, end_col = details.end_row, details.end_col
  if end_row < row or (end_row == row and end_col < col) then
    row, col = end_row, end_col
  end
  return { row = row, col = col, end_row = end_row, end_col = end_col }
end

---@return string[]
function Region:text()
  local at = self:bounds()
  return vim.api.nvim_buf_get_text(self.buf, at.row, at.col, at.end_row, at.end_col, {})
end

--- Whether its text is still what it was.
---@return boolean
function Region:is_unchanged()
  return vim.deep_equal(self:text(), self.original)
end

---@param highlight? string
function Region:paint(highlight)
  self:place(self:bounds(), highlight)
end

function Region:delete()
  if vim.api.nvim_buf_is_valid(self.buf) then
    vim.api.nvim_buf_del_extmark(self.buf, NAMESPACE, self.mark)
  end
end

--- How many rows a row is away; 0 inside.
---@param row integer
---@return integer
function Region:distance(row)
  local at = self:bounds()
  return math.max(at.row - row, row - at.end_row, 0)
end

return Region
