"""The model store: which models there are, where their files come from, and whether they are the right ones."""

from engine.store.model_store import Located, Store, sources_of
from engine.store.progress import PullError, PullProgress
from engine.store.registry import Entry, Registry

__all__ = ["Entry", "Located", "PullError", "PullProgress", "Registry", "Store", "sources_of"]
