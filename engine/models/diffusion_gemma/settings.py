"""What config.json and generation_config.json of a checkpoint say, read as data: `GemmaSettings`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.diffusion.sampling import SamplingConfig
from engine.models.checkpoint_json import damaged, read_object
from engine.protocol.errors import EngineError

MODEL_TYPE = "diffusion_gemma"
CONFIG = "config.json"
GENERATION = "generation_config.json"
TRAINED_STEPS = 48
_DEFAULT_END = 1
# Names of code that a repository brings along. It is never looked at.
_CODE_FIELDS = frozenset({"auto_map", "custom_pipelines"})


@dataclass(frozen=True, slots=True)
class GemmaSettings:
    """fields: what transformers' configuration class is made from.

    end_ids: in the checkpoint's order; the first one ends a text, the others a turn. stored_dtype: as config.json
    names it, empty where it does not. sampling: as the checkpoint recommends it, else as the family was published.
    """

    fields: Mapping[str, Any]
    canvas_length: int
    vocab_size: int
    trained_tokens: int
    end_ids: tuple[int, ...]
    stored_dtype: str
    sampling: SamplingConfig


def read_settings(folder: Path) -> GemmaSettings:
    """The settings of the checkpoint in `folder`.

    Raises EngineError: model_missing, model_corrupt, model_unsupported for a model of another kind.
    """
    config = read_object(folder / CONFIG)
    if config.get("model_type") != MODEL_TYPE:
        raise unsupported(f"{folder} holds a model of type {config.get('model_type')!r}, not {MODEL_TYPE}")
    text = config.get("text_config")
    text = text if isinstance(text, dict) else {}
    if "quantization_config" in config:
        raise unsupported(
            f"{folder} holds weights that are quantised already",
            "use the bf16 checkpoint: precision int8 or int4 makes it small while it is loaded",
        )
    if text.get("use_bidirectional_attention") == "all":
        raise unsupported(f"{folder} has an encoder that is not causal, so that no prefix of it could be kept")
    if not (config.get("tie_word_embeddings", True) and text.get("tie_word_embeddings", True)):
        raise unsupported(f"{folder} has an encoder with weights of its own")
    generation = read_object(folder / GENERATION) if (folder / GENERATION).is_file() else {}
    vocab_size = _positive(folder, text, "vocab_size", 262_144)
    return GemmaSettings(
        fields={key: value for key, value in config.items() if key not in _CODE_FIELDS},
        canvas_length=_positive(folder, config, "canvas_length", 256),
        vocab_size=vocab_size,
        trained_tokens=_positive(folder, text, "max_position_embeddings", 131_072),
        end_ids=_end_ids(folder, (generation, config, text), vocab_size),
        stored_dtype=str(config.get("dtype") or config.get("torch_dtype") or ""),
        sampling=_sampling(folder, generation),
    )


def unsupported(
    message: str, remedy: str = "use google/diffusiongemma-26B-A4B-it or a checkpoint of its shape"
) -> EngineError:
    """The error for a checkpoint this version does not run."""
    return EngineError("model_unsupported", message, remedy)


def _positive(folder: Path, fields: Mapping[str, Any], name: str, default: int) -> int:
    value = fields.get(name, default)
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise damaged(folder / CONFIG, f"{name} is {value!r}")
    return value


def _end_ids(folder: Path, sources: tuple[Mapping[str, Any], ...], vocab_size: int) -> tuple[int, ...]:
    for source in sources:
        found = source.get("eos_token_id")
        ids = found if isinstance(found, list) else [found] if found is not None else []
        if ids:
            if not all(isinstance(index, int) and 0 <= index < vocab_size for index in ids):
                raise damaged(folder / CONFIG, f"eos_token_id is {found!r}")
            return tuple(ids)
    return (_DEFAULT_END,)


def _sampling(folder: Path, generation: Mapping[str, Any]) -> SamplingConfig:
    """The published numbers (transformers' defaults of the family), where generation_config.json names no others."""
    sampler = generation.get("sampler_config")
    bound = sampler.get("entropy_bound") if isinstance(sampler, dict) else None
    given = {
        "steps": generation.get("max_denoising_steps"),
        "temperature_start": generation.get("t_max"),
        "temperature_end": generation.get("t_min"),
        "stable_steps": generation.get("stability_threshold"),
        "stop_entropy": generation.get("confidence_threshold"),
        "entropy_bound": bound,
    }
    published = {
        "steps": TRAINED_STEPS,
        "temperature_start": 0.8,
        "temperature_end": 0.4,
        "stable_steps": 1,
        "stop_entropy": 0.005,
        "entropy_bound": 0.1,
    }
    numbers = published | {name: value for name, value in given.items() if value is not None}
    try:
        return SamplingConfig(sampler="entropy_bound", schedule="adaptive", deterministic=False, **numbers)
    except (TypeError, ValueError) as fault:
        raise damaged(folder / GENERATION, str(fault)) from fault
