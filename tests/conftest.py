"""How hard the property tests look: 300 examples in the normal run, `--hypothesis-profile=nightly` for 10,000."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("normal", max_examples=300, deadline=None)
settings.register_profile("nightly", max_examples=10_000, deadline=None)
settings.load_profile("normal")
