"""How a hole that is not filled yet is shown to a model: `shown_hole`."""

_JSON = frozenset({"json", "jsonc"})


def shown_hole(language: str) -> str:
    """Code in many languages, and in the others what people write for what is left out; in JSON a value."""
    return "null" if language in _JSON else "..."
