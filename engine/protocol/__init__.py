"""The only door between `lsp_server` and `engine`.

Messages, their bytes, framing, failure kinds and addresses. Stdlib and msgpack only.
"""
