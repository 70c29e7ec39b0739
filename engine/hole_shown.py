"""How a hole that is not filled yet is shown to a model: `SHOWN`."""

SHOWN = "..."
"""Code in many languages, and in the others what people write for what is left out."""
