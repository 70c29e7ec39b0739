--- The colours, each a link that a colour scheme or a person may set otherwise.

local M = {}

---@type table<string, string>
M.links = {
  LacunaGhost = "Comment",
  LacunaHint = "NonText",
  LacunaReplaced = "DiagnosticDeprecated",
  LacunaSettled = "Normal",
  LacunaUndecided = "Comment",
  LacunaAdd = "DiffAdd",
  LacunaDelete = "DiffDelete",
  LacunaDeleteText = "DiffChange",
}

function M.define()
  for group, link in pairs(M.links) do
    vim.api.nvim_set_hl(0, group, { link = link, default = true })
  end
end

return M
