-- Neovim's Lua: `vim` is there, and what hangs on it may be set.
std = "luajit"
max_line_length = 120
globals = { "vim" }
-- Made by a program, with the settings' own sentences.
files["lua/lacuna/settings_meta.lua"] = { max_line_length = false }
