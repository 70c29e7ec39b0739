"""One file per LSP method: parse, ask, reply. Features do not import each other."""
