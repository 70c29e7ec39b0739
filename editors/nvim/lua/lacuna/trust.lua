--- Which environments inside projects a person has allowed to run, by their folder and what their server's script says.

local M = {}

---@return string
local function file()
  return vim.fs.joinpath(vim.fn.stdpath("state"), "lacuna", "trusted.json")
end

---@param folder string
---@return string? digest
local function digest_of(folder)
  local is_windows = vim.fn.has("win32") == 1
  local script = vim.fs.joinpath(folder, is_windows and "Scripts/lacuna.exe" or "bin/lacuna")
  local handle = io.open(script, "rb")
  if not handle then
    return nil
  end
  local text = handle:read("*a")
  handle:close()
  return vim.fn.sha256(text)
end

---@return table<string, string> digest by folder
local function read()
  local handle = io.open(file(), "r")
  if not handle then
    return {}
  end
  local is_json, found = pcall(vim.json.decode, handle:read("*a"))
  handle:close()
  return is_json and type(found) == "table" and found or {}
end

---@param folder string
---@return boolean
function M.is_trusted(folder)
  local digest = digest_of(folder)
  return digest ~= nil and read()[vim.fs.normalize(folder)] == digest
end

--- Raises where the file that remembers it cannot be written.
---@param folder string
function M.add(folder)
  local trusted = read()
  trusted[vim.fs.normalize(folder)] = digest_of(folder)
  vim.fn.mkdir(vim.fs.dirname(file()), "p")
  local handle = assert(io.open(file(), "w"))
  handle:write(vim.json.encode(trusted))
  handle:close()
end

return M
