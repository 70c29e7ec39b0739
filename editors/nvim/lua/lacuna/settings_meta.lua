---@meta
-- Made by `python -m lsp_server.settings_schema write`; change lsp_server/settings.py instead.

---@class lacuna.OwnAction
---@field title string
---@field instruction string
---@field languages? string[] LSP language ids; without them for all languages

---@class lacuna.Settings
---@field enable? boolean Offer anything at all. Default: true
---@field disabledLanguages? string[] Language ids in which nothing is suggested while typing. Default: {}
---@field disabledFiles? string[] Glob patterns (`*.txt`) of files in which nothing is suggested while typing. Default: {}
---@field inlineCompletion? lacuna.Settings.inlineCompletion
---@field completion? lacuna.Settings.completion
---@field rewrite? lacuna.Settings.rewrite
---@field holes? lacuna.Settings.holes
---@field actions? lacuna.OwnAction[] Code actions of your own: a list of `{title, instruction, languages}`; without `languages` for all of them. Default: {}
---@field context? lacuna.Settings.context
---@field privacy? lacuna.Settings.privacy
---@field drafts? boolean Send `lacuna/draft` while a text is denoised (for plug-ins). Default: false
---@field engine? lacuna.Settings.engine
---@field positionEncoding? 'auto'|'utf-16' Count columns as agreed with the editor, or in UTF-16 units whatever it prefers. Default: 'auto'

---@class lacuna.Settings.inlineCompletion
---@field enable? boolean Offer ghost text. Default: true
---@field maxTokens? integer Longest ghost text, in tokens. 1 to 4096. Default: 96
---@field deadlineMs? integer After this time the best text so far is shown; 0 waits for the end. 0 to 600000. Default: 6000
---@field debounceMs? integer While keys come faster than this, only the last of them asks the engine; grows, up to 600, while the engine cannot keep up. 0 asks with every key. 0 to 10000. Default: 75
---@field alternatives? integer How many different texts to offer who asks for ghost text. 1 to 8. Default: 4
---@field alternativesMs? integer So long after the first text its alternatives are waited for; those that come later are there for who asks again. 0 to 600000. Default: 1200
---@field inComments? boolean Suggest inside comments and strings. Default: true

---@class lacuna.Settings.completion
---@field enable? boolean Offer one entry in the completion menu. Default: true
---@field maxTokens? integer Longest menu entry, in tokens. 1 to 4096. Default: 32
---@field deadlineMs? integer After this time the menu goes without the entry. 1 to 600000. Default: 1500

---@class lacuna.Settings.rewrite
---@field maxTokens? integer Longest rewritten selection, in tokens. 1 to 16384. Default: 512
---@field deadlineMs? integer A rewrite that takes longer changes nothing; 0 waits. 0 to 3600000. Default: 120000
---@field confirm? boolean Where the editor can, have each change of a rewrite confirmed before it is applied. Default: true

---@class lacuna.Settings.holes
---@field markers? string[] What a hole to be filled looks like. `...`, and a marker with a blank in it, must be alone in a body. Default: { '<fill>', '...', 'pass  # fill' }

---@class lacuna.Settings.context
---@field prefixChars? integer How much text before the cursor the engine sees. 0 to 1000000. Default: 4096
---@field suffixChars? integer How much text after the cursor the engine sees. 0 to 1000000. Default: 1024
---@field neighbourTokens? integer How much of what is before the cursor, in tokens, may be imports and signatures from above and parts of other open files; 0 for none. 0 to 256. Default: 160

---@class lacuna.Settings.privacy
---@field secretFiles? string[] More glob patterns of files that must never reach the engine. Default: {}
---@field openFiles? string[] Glob patterns of files that are open although they look like secrets or git ignores them. Default: {}
---@field gitIgnored? boolean Suggest in files that git ignores, too. They never come into the context of another file. Default: false

---@class lacuna.Settings.engine
---@field url? string Ask the engine at this address (`https://engine.example.org`, `http://127.0.0.1:8080/v1`) instead of one on this machine. The documents you work on are sent there. Default: ''
---@field api? 'auto'|'lacuna'|'openai' What is spoken at `engine.url`: Lacuna's own protocol (`lacuna engine serve`), OpenAI's (vLLM, llama.cpp, Ollama), or whichever answers. Default: 'auto'
---@field model? string The model to ask for at `engine.url`; without a name the first that is offered. Default: ''
---@field tokenFile? string A file that holds the token (API key) for `engine.url`, readable by you alone. Default: ''
---@field allowFolders? string[] Folders whose documents may be sent to `engine.url`; no others are then. Without any, all documents may. Default: {}
---@field timeoutMs? integer Give up on `engine.url` when nothing comes from there for this long. 100 to 3600000. Default: 30000
