--- What Lacuna's server understands beyond the standard protocol: the names, and what goes over the wire.
--- Ranges and positions are LSP's, in the encoding agreed with the server.

---@class lacuna.DraftParams
---@field uri string
---@field version integer
---@field range lsp.Range what the draft stands for, in the document of `version`
---@field text string
---@field settled integer how many code points at the start of `text` will not change any more
---@field step integer
---@field steps integer 0 when nobody knows how many there will be
---@field hole? integer which of several holes, from 0
---@field token? lsp.ProgressToken the request's `workDoneToken`

---@class lacuna.RewriteParams
---@field textDocument lsp.VersionedTextDocumentIdentifier
---@field range lsp.Range
---@field instruction string several instructions stand on a line each
---@field seed? integer none or 0 takes the likeliest text, another one gives another text
---@field workDoneToken? lsp.ProgressToken

---@class lacuna.Hunk
---@field range lsp.Range
---@field newText string

---@class lacuna.RewriteResult
---@field version integer
---@field range lsp.Range the selection, where it stands in `version`
---@field newText string
---@field hunks lacuna.Hunk[] ascending, never overlapping; all of them together turn the selection into `newText`
---@field note? string

---@class lacuna.FillHolesParams
---@field textDocument lsp.VersionedTextDocumentIdentifier
---@field ranges lsp.Range[]
---@field workDoneToken? lsp.ProgressToken

---@class lacuna.FillHolesResult
---@field version integer
---@field holes { range: lsp.Range, newText?: string }[]

---@alias lacuna.State "idle"|"starting"|"loading"|"ready"|"busy"|"failed"

---@class lacuna.StatusParams
---@field state lacuna.State
---@field message string
---@field remedy string
---@field percent? integer
---@field model string

return {
  --- Notification from the server: a text while it is denoised.
  DRAFT = "lacuna/draft",
  --- Notification from the server: how the engine is.
  STATUS = "lacuna/status",
  --- Request: `lacuna.RewriteParams` to `lacuna.RewriteResult` or null.
  REWRITE = "lacuna/rewrite",
  --- Request: `lacuna.FillHolesParams` to `lacuna.FillHolesResult` or null.
  FILL_HOLES = "lacuna/fillHoles",
  --- Kinds of code actions.
  KIND_FILL = "refactor.rewrite.lacuna.fill",
  KIND_FILL_HOLES = "refactor.rewrite.lacuna.fill_holes",
  --- What the server is told of this client.
  capabilities = {
    textDocument = { inlineCompletion = { dynamicRegistration = false } },
    experimental = { lacuna = { drafts = true, status = true } },
  },
  --- Standard values that Neovim 0.11 has no name for.
  INLINE_COMPLETION = "textDocument/inlineCompletion",
  INVOKED = 1,
  AUTOMATIC = 2,
  CONTENT_MODIFIED = -32801,
  REQUEST_CANCELLED = -32800,
}
