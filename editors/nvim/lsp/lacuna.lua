--- The server's configuration, as `vim.lsp.enable("lacuna")` takes it. Every language is served.

---@type vim.lsp.Config
return {
  cmd = function(dispatchers, config)
    return require("lacuna.server").spawn(dispatchers, config)
  end,
  root_dir = function(buf, on_dir)
    require("lacuna.server").root_dir(buf, on_dir)
  end,
  capabilities = require("lacuna.protocol").capabilities,
  settings = { lacuna = vim.empty_dict() },
  handlers = {
    [require("lacuna.protocol").DRAFT] = function(_, params, context)
      require("lacuna.rewrite").hear(params, context.client_id)
    end,
    [require("lacuna.protocol").STATUS] = function(_, params, context)
      require("lacuna.status").hear(params, context.client_id)
      if params.state == "ready" then
        require("lacuna.ghost").ready(context.client_id, "engine")
      end
    end,
    -- A server suggests nothing before it knows its settings.
    ["workspace/configuration"] = function(err, params, context)
      vim.defer_fn(function()
        require("lacuna.ghost").ready(context.client_id, "settings")
      end, 100)
      return vim.lsp.handlers["workspace/configuration"](err, params, context)
    end,
    -- Neovim's own handler writes where the next redraw may wipe it away.
    ["window/showMessage"] = function(_, params)
      require("lacuna.notice").pass_on(params)
      return vim.NIL
    end,
  },
}
