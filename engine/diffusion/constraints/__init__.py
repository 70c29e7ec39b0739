"""What a text must obey while a canvas is denoised: exact ids, characters, extent, "must parse", a JSON Schema.

A constraint acts twice. Before sampling it takes away logits, so that what can be known to be wrong never comes out;
and it reviews the full canvas, naming the places that are to be denoised anew. Whatever the logits are, the job ends
with a text that obeys or with an EngineError. Torch only; parsers are given by the caller, documents by their text.
"""

from __future__ import annotations

from engine.diffusion.constraint import Constraint
from engine.diffusion.constraints.characters import AllowedCharacters
from engine.diffusion.constraints.combined import Combined
from engine.diffusion.constraints.exact import ExactText
from engine.diffusion.constraints.extent import Extent
from engine.diffusion.constraints.json_schema import json_schema
from engine.diffusion.constraints.reviewed import Reviewed, must_parse
from engine.diffusion.constraints.vocabulary import Vocabulary

__all__ = [
    "AllowedCharacters",
    "Combined",
    "Constraint",
    "ExactText",
    "Extent",
    "Reviewed",
    "Vocabulary",
    "json_schema",
    "must_parse",
]
