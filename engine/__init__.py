"""The resident engine: models, denoising, the socket it serves on. Importing it has no side effects."""

__version__ = "0.1.0"
