"""The language server: editors on one side, the engine's socket on the other. Never imports torch."""

__version__ = "0.1.0"
