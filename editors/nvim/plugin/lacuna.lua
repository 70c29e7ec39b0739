--- Runs when Neovim starts: nothing is loaded but what listens, and keys are mapped once the person's own are there.

if vim.g.loaded_lacuna then
  return
end
vim.g.loaded_lacuna = true

if vim.fn.has("nvim-0.11") == 0 then
  vim.notify("Lacuna: needs Neovim 0.11 or newer", vim.log.levels.WARN)
  return
end

require("lacuna").start()

if vim.v.vim_did_enter == 1 then
  require("lacuna.keys").define()
else
  vim.api.nvim_create_autocmd("VimEnter", {
    once = true,
    callback = function()
      require("lacuna.keys").define()
    end,
  })
end
