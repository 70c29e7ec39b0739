"""From a model's folder to a core that serves canvases: precision, memory, the family's loader, its prompts.

A family's modules, and with them transformers, are imported only when one of its models is loaded.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from engine.canvas_serving.core import CanvasCore
from engine.canvas_serving.prompt_style import Chat, Encode, PromptStyle, llama3_chat, qwen_chat, seed_chat
from engine.canvas_serving.prompts import CanvasPrompt, LayOut, sized, sized_holes, styled
from engine.diffusion.sampling import SamplingConfig
from engine.hole_order import HoleOrder
from engine.models.canvas_model import CanvasModel
from engine.models.detection import read_config_json
from engine.models.special_tokens import special_tokens
from engine.protocol.errors import EngineError
from engine.protocol.messages import Fill, Rewrite

Progress = Callable[[str, float], None]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be loaded, and how.

    called: every name the model goes by; variants that share weights and configuration differ in nothing else.
    layout: of the masked family, where somebody named it; empty to find it out.
    """

    folder: Path
    name: str
    called: str
    device: str
    precision: str
    window_tokens: int
    threads: int
    layout: str = ""
    hole_order: HoleOrder = "least_doubt"


@dataclass(frozen=True, slots=True)
class LoadedCanvas:
    """A model, how its prompts are laid out, and how its canvases are denoised."""

    model: CanvasModel
    lay_out: LayOut
    sampling: SamplingConfig


def load_canvas_core(family: str, wanted: Wanted, progress: Progress) -> CanvasCore:
    """Load a model of a canvas family. Raises EngineError: model_missing, model_corrupt, model_unsupported,
    out_of_memory."""
    from engine.runtime.linear import configure_runtime

    configure_runtime(wanted.threads)
    loaded = _masked(wanted, progress) if family == "masked" else _diffusion_gemma(wanted, progress)
    return CanvasCore(
        loaded.model,
        lay_out=loaded.lay_out,
        config=loaded.sampling,
        threads=wanted.threads,
        hole_order=wanted.hole_order,
    )


def _masked(wanted: Wanted, progress: Progress) -> LoadedCanvas:
    from engine.models.masked.families import detect, layout_named
    from engine.models.masked.loading import load_masked

    config = read_config_json(wanted.folder)
    tokens = special_tokens(wanted.folder)
    layout = layout_named(wanted.layout) if wanted.layout else detect(config, tokens, wanted.called)
    if layout is None:
        raise EngineError(
            "model_unsupported",
            f"{wanted.folder} holds a {config.get('model_type', 'nameless')!r} that is no masked-diffusion model",
            "use the folder as it was published, with its config.json and tokenizer.json",
        )
    loaded = load_masked(
        wanted.folder,
        layout=layout,
        name=wanted.name,
        device=wanted.device,
        precision=wanted.precision,
        window_tokens=wanted.window_tokens,
        progress=lambda done: progress("load", done),
    )
    chats: dict[str, Callable[[dict[str, int], Encode], Chat | None]] = {
        "qwen": qwen_chat,
        "llama3": llama3_chat,
        "seed": seed_chat,
    }
    chat = chats.get(layout.chat)
    style = PromptStyle(
        gap=layout.fill,
        start=tuple(token for token in (loaded.roles.start,) if token >= 0),
        stop=tuple(token for token in (loaded.roles.stop,) if token >= 0),
        chat=chat(dict(loaded.roles.turns), loaded.model.tokenizer.encode) if chat else None,
    )
    lay_out = styled(style, loaded.model.tokenizer, loaded.model.facts)
    return LoadedCanvas(loaded.model, lay_out, layout.sampling)


def _diffusion_gemma(wanted: Wanted, progress: Progress) -> LoadedCanvas:
    from engine.models.diffusion_gemma.loading import load_diffusion_gemma
    from engine.models.diffusion_gemma.prompts import GemmaIds, fill_prompt, rewrite_prompt

    loaded = load_diffusion_gemma(
        wanted.folder,
        name=wanted.name,
        device=wanted.device,
        precision=wanted.precision,
        threads=wanted.threads,
        window_tokens=wanted.window_tokens,
        progress=progress,
    )
    model, ids = loaded.model, GemmaIds.of(loaded.special)

    def lay_out(request: Fill | Rewrite) -> CanvasPrompt:
        if isinstance(request, Rewrite):
            prompt = rewrite_prompt(request, model.tokenizer, model.facts, ids)
            return sized(prompt.job, prompt.limits, model.facts)
        prompt = fill_prompt(request, model.tokenizer, model.facts, ids)
        return sized_holes(prompt.job, prompt.holes, prompt.limits, model.facts)

    return LoadedCanvas(model, lay_out, loaded.sampling)
