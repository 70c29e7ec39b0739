"""From a checkpoint's folder to a `DiffusionGemmaModel`: the order of things, and what the loop gets to know.

Digests are the store's, which checks every file before it names the folder. No code of a repository is run, its chat
template neither: the turns are laid out from ids (see `prompts`), so that a person's text can never become a token
of control, which text put through a template and a tokenizer can.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import torch

from engine.diffusion.sampling import SamplingConfig
from engine.models import memory
from engine.models.canvas_model import CanvasFacts
from engine.models.checkpoint_json import damaged
from engine.models.diffusion_gemma.assembly import ModuleForm, empty_network, forms_of, put_weights, wanted_tensors
from engine.models.diffusion_gemma.checkpoint import StoredTensor, read_index, require_all
from engine.models.diffusion_gemma.memory import PRECISIONS, estimates
from engine.models.diffusion_gemma.model import DiffusionGemmaModel
from engine.models.diffusion_gemma.network import GemmaNetwork
from engine.models.diffusion_gemma.resident import ResidentShape
from engine.models.diffusion_gemma.settings import CONFIG, GemmaSettings, read_settings, unsupported
from engine.models.diffusion_gemma.tokenizer import GemmaVocabulary, read_vocabulary
from engine.runtime.linear import configure_runtime

FAMILY = "diffusion_gemma"
WINDOW_TOKENS = 4096
CONTEXTS = 2

Progress = Callable[[str, float], None]

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LoadedGemma:
    """special: ids of the special tokens by their text. forms: what each module is really kept in.

    sampling: how the checkpoint wants its canvases denoised.
    """

    model: DiffusionGemmaModel
    special: Mapping[str, int]
    sampling: SamplingConfig
    forms: tuple[ModuleForm, ...]

    @property
    def packed_share(self) -> float:
        """The share of the weights' bytes that is kept in few bits."""
        packed = sum(form.bytes for form in self.forms if form.form.startswith("int"))
        return packed / (sum(form.bytes for form in self.forms) or 1)

    @property
    def summary(self) -> str:
        """Bytes and modules by what they are kept in, the largest share first."""
        sizes: Counter[str] = Counter()
        for form in self.forms:
            sizes[form.form] += form.bytes
        modules = Counter(form.form for form in self.forms)
        return ", ".join(f"{kind}: {size} bytes in {modules[kind]} modules" for kind, size in sizes.most_common())


def load_diffusion_gemma(
    folder: Path,
    *,
    name: str = "",
    device: str = "cpu",
    precision: str = "auto",
    threads: int | None = None,
    window_tokens: int = 0,
    free_bytes: int | None = None,
    progress: Progress | None = None,
) -> LoadedGemma:
    """Load the checkpoint in `folder`.

    precision: "fp32", "bf16", "int8", "int4", or "auto": bf16 on a GPU, on the CPU what the checkpoint is stored in.
    window_tokens: prompt and canvas together, 0 for what is usual. free_bytes: memory that may be used, None asks the
        device.

    Raises EngineError: model_missing, model_corrupt, model_unsupported, out_of_memory.
    """
    configure_runtime(threads)
    place = _device(device)
    settings = read_settings(folder)
    chosen = _precision(settings, place, precision)
    vocabulary = read_vocabulary(folder)
    index = read_index(folder)
    try:
        network = empty_network(settings.fields)
    except Exception as fault:  # the library raises nothing more precise
        raise damaged(folder / CONFIG, f"it fits no DiffusionGemma: {fault}") from fault
    require_all(folder, index, wanted_tensors(network))
    window = min(window_tokens or WINDOW_TOKENS, settings.trained_tokens)
    shown = name or folder.name
    passes = GemmaNetwork(network)
    shape = ResidentShape(passes.layer_shapes, PRECISIONS[chosen][0], place)
    sizes = estimates(
        index,
        cache_values=CONTEXTS * shape.bytes_of(window) // shape.dtype.itemsize,
        canvas_length=settings.canvas_length,
        vocab_size=settings.vocab_size,
    )
    free = memory.free_bytes(str(place)) if free_bytes is None else free_bytes
    memory.fitting_precision(shown, [chosen], sizes, free, str(place))
    _fill(network, index, chosen, place, progress)
    facts = _facts(shown, settings, vocabulary, window, str(place), chosen)
    model = DiffusionGemmaModel(passes, vocabulary.tokenizer, facts, filler=settings.end_ids[0], contexts=CONTEXTS)
    loaded = LoadedGemma(model, vocabulary.special, settings.sampling, forms_of(network))
    log.info("%s is kept as %s", shown, loaded.summary)
    for form in loaded.forms:
        log.debug("%s: %s, %d bytes", form.name, form.form, form.bytes)
    return loaded


def _device(name: str) -> torch.device:
    kind, _, index = name.partition(":")
    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if name == "cpu" or (kind == "cuda" and (index or "0").isdecimal() and int(index or 0) < gpus):
        return torch.device(name)
    raise unsupported(f"the device {name} is not here", "use cpu, or a CUDA device that torch can see")


def _precision(settings: GemmaSettings, device: torch.device, asked: str) -> str:
    if asked == "auto":
        return "fp32" if device.type == "cpu" and settings.stored_dtype == "float32" else "bf16"
    if asked not in PRECISIONS:
        raise unsupported(f"the precision {asked!r} is not available", f"use one of {', '.join(PRECISIONS)}")
    return asked


def _fill(
    network: object, index: Mapping[str, StoredTensor], precision: str, device: torch.device, progress: Progress | None
) -> None:
    dtype, bits = PRECISIONS[precision]

    def report(fraction: float) -> None:
        if progress is not None:
            progress("load", fraction)

    put_weights(network, index, dtype, device, bits, report)


def _facts(
    name: str, settings: GemmaSettings, vocabulary: GemmaVocabulary, window: int, device: str, precision: str
) -> CanvasFacts:
    """What the loop needs to know. An id that ends the text may come out, no other special or undecodable one."""
    forbidden = torch.tensor([not vocabulary.tokenizer.can_decode(index) for index in range(settings.vocab_size)])
    forbidden[list(settings.end_ids)] = False
    return CanvasFacts(
        name=name,
        family=FAMILY,
        device=device,
        precision=precision,
        vocab_size=settings.vocab_size,
        window_tokens=window,
        noise="uniform",
        mask_id=-1,
        end_ids=frozenset(settings.end_ids),
        forbidden=forbidden,
        canvas_length=settings.canvas_length,
        right_context=False,
        trained_steps=settings.sampling.steps,
    )
