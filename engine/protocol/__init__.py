"""The only door between `lsp_server` and `engine`: messages, framing, failure kinds, addresses. Stdlib and msgpack only."""
