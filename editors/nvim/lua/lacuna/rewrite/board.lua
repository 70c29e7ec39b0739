--- The rewrites and fills that run or wait for a verdict, in all buffers.

---@class lacuna.rewrite.Job
---@field id integer
---@field buf integer
---@field client_id integer
---@field kind "rewrite"|"fill"
---@field phase "asking"|"review"
---@field token string
---@field region lacuna.rewrite.Region
---@field handle? lacuna.Handle
---@field instructions string[]
---@field seed integer
---@field proposals lacuna.rewrite.Proposal[]
---@field draft_marks integer[]
---@field hint_marks? integer[]
---@field review_keys string
---@field accepted_tick? integer

---@class lacuna.rewrite.Rows
---@field row integer
---@field end_row integer inclusive

local M = {}

---@type lacuna.rewrite.Job[]
local jobs = {}
local count = 0

---@param job lacuna.rewrite.Job without `id` and `token`
---@return lacuna.rewrite.Job
function M.add(job)
  count = count + 1
  job.id = count
  jobs[#jobs + 1] = job
  return job
end

--- A token no request had before, for one more request of a job.
---@param job lacuna.rewrite.Job
---@return string
function M.new_token(job)
  count = count + 1
  job.token = ("lacuna.nvim/%d/%d"):format(vim.uv.os_getpid(), count)
  return job.token
end

---@param job lacuna.rewrite.Job
function M.remove(job)
  jobs = vim.tbl_filter(function(other)
    return other ~= job
  end, jobs)
end

---@param buf integer
---@return lacuna.rewrite.Job[]
function M.of(buf)
  return vim.tbl_filter(function(job)
    return job.buf == buf
  end, jobs)
end

--- The job a draft is of. A server that names no token has one job at most in a document.
---@param params lacuna.DraftParams
---@param client_id integer
---@return lacuna.rewrite.Job?
function M.of_draft(params, client_id)
  local same = vim.tbl_filter(function(job)
    return job.client_id == client_id
      and job.phase == "asking"
      and (params.token == job.token or (params.token == nil and vim.uri_from_bufnr(job.buf) == params.uri))
  end, jobs)
  return same[1]
end

--- The rewrites of a buffer that share a row with one of some stretches.
---@param buf integer
---@param stretches lacuna.rewrite.Rows[]
---@param except? lacuna.rewrite.Job
---@return lacuna.rewrite.Job[]
function M.rewrites_on(buf, stretches, except)
  return vim.tbl_filter(function(job)
    local theirs = job.region:bounds()
    return job ~= except
      and job.kind == "rewrite"
      and vim.iter(stretches):any(function(at)
        return theirs.end_row >= at.row and theirs.row <= at.end_row
      end)
  end, M.of(buf))
end

--- What runs in any buffer.
---@return lacuna.rewrite.Job[]
function M.running()
  return vim.tbl_filter(function(job)
    return job.phase == "asking"
  end, jobs)
end

--- Whether a job runs or waits still.
---@param job lacuna.rewrite.Job
---@return boolean
function M.has(job)
  return vim.list_contains(jobs, job)
end

--- The job at a row of a buffer: the nearest, and of several the newest.
---@param buf integer
---@param row integer
---@param phase? "asking"|"review"
---@return lacuna.rewrite.Job?
function M.at(buf, row, phase)
  local nearest ---@type lacuna.rewrite.Job?
  for _, job in ipairs(M.of(buf)) do
    if not phase or job.phase == phase then
      if not nearest or job.region:distance(row) <= nearest.region:distance(row) then
        nearest = job
      end
    end
  end
  return nearest
end

return M
