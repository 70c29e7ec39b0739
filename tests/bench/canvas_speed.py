"""Steps and tokens per second of a canvas family on this machine: `python -m tests.bench.canvas_speed --device cuda`.

A stock Qwen2 of the shape given (0.5B unless told otherwise) with random weights, behind the real seam and loop: a gap
between two known texts, one place settled in each step, so that only speed is looked at. One line of JSON per layout
and way to run: steps and tokens per second, and the share of the memory's bandwidth that reading the weights once a
step takes; the bandwidth is that of summing one large tensor here. On CUDA each is measured with passes launched anew
and with passes recorded and replayed.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import dataclass

import torch

from engine.diffusion.parallel import denoise_canvas
from engine.diffusion.sampling import SamplingConfig
from engine.diffusion.stopping import Limits
from engine.models.canvas_model import CanvasFacts, CanvasJob, Known, Part
from engine.models.masked.config import Architecture
from engine.models.masked.families import LAYOUTS
from engine.models.masked.model import MaskedModel
from engine.models.masked.weights import Network, stock_network
from engine.runtime.replay import CudaGraphs, Replayer
from engine.tokenizer import ByteTokenizer

_WINDOW = 4096
_MEASURED_BYTES = 1 << 28


@dataclass(frozen=True)
class Asked:
    """What is run. refresh: steps between exact passes of bidirectional layouts."""

    device: str
    precision: torch.dtype
    prefix: int
    places: int
    refresh: int


def model_of(network: Network, layout: str, asked: Asked, replayer: Replayer) -> MaskedModel:
    """The network taken for a checkpoint of a layout; its last id is the mask."""
    chosen = LAYOUTS[layout]
    vocab = network.config.vocab_size
    facts = CanvasFacts(
        name=layout,
        family="masked",
        device=asked.device,
        precision=str(asked.precision),
        vocab_size=vocab,
        window_tokens=_WINDOW,
        noise="mask",
        mask_id=vocab - 1,
        end_ids=frozenset(),
        forbidden=torch.zeros(vocab, dtype=torch.bool, device=asked.device),
        right_context=chosen.block == 0,
        block=chosen.block,
        exact_cache=chosen.block > 0,
    )
    model = MaskedModel(network, chosen, ByteTokenizer(), facts, start_id=0)
    model.replayer = replayer
    return model


def measure(model: MaskedModel, asked: Asked) -> tuple[int, float]:
    """Steps of a gap and the seconds they took; the first gap warms up."""
    suffix = (5,) * 64 if model.facts.right_context else ()
    job = CanvasJob(Known((3,) * asked.prefix, suffix), (Part(is_hole=True, length=asked.places),))
    config = SamplingConfig(schedule="linear", confidence_threshold=1.0, refresh_every=asked.refresh)
    steps, began = 0, 0.0
    for turn in range(2):
        run = denoise_canvas(
            model, job, config, torch.Generator().manual_seed(0), limits=Limits(asked.places), expired=lambda: False
        )
        steps, began = 0, time.perf_counter()
        for told in run:
            steps += told is not None
        if turn == 0 and asked.device.startswith("cuda"):
            torch.cuda.synchronize()
    return steps, time.perf_counter() - began


def bandwidth(device: str) -> float:
    """Bytes per second read from memory."""
    large = torch.ones(_MEASURED_BYTES // 4, device=device)
    best = float("inf")
    for _ in range(5):
        began = time.perf_counter()
        float(large.sum())
        best = min(best, time.perf_counter() - began)
    return _MEASURED_BYTES / best


def _architecture(asked: argparse.Namespace) -> Architecture:
    return Architecture(
        stock="qwen2",
        layers=asked.layers,
        hidden=asked.hidden,
        heads=asked.hidden // 64,
        kv_heads=2,
        head_dim=64,
        intermediate=asked.hidden * 38 // 7,
        vocab=asked.vocab,
        window=_WINDOW,
        rope_theta=1e6,
        norm_epsilon=1e-6,
        tied=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--precision", choices=["bfloat16", "float32"], default="bfloat16")
    parser.add_argument("--hidden", type=int, default=896)
    parser.add_argument("--layers", type=int, default=24)
    parser.add_argument("--vocab", type=int, default=151_936)
    parser.add_argument("--prefix", type=int, default=512)
    parser.add_argument("--places", type=int, default=64)
    parser.add_argument("--refresh", type=int, default=4)
    given = parser.parse_args()
    asked = Asked(given.device, getattr(torch, given.precision), given.prefix, given.places, given.refresh)
    network = stock_network(_architecture(given), "cpu")
    torch.nn.Module.to(network, device=asked.device, dtype=asked.precision)
    network.requires_grad_(False)
    network.train(False)
    size = sum(weight.numel() * weight.element_size() for weight in network.parameters())
    limit = bandwidth(asked.device)
    recorders = [None, CudaGraphs()] if asked.device.startswith("cuda") else [None]
    for layout in ("a2d-mdlm", "a2d-bd3lm"):
        for recorder in recorders:
            steps, seconds = measure(model_of(network, layout, asked, Replayer(recorder)), asked)
            found = {
                "layout": layout,
                "recorded": recorder is not None,
                "steps_per_s": round(steps / seconds, 2),
                "tokens_per_s": round(asked.places / seconds, 2),
                "bandwidth_share": round(steps / seconds * size / limit, 3),
            }
            print(json.dumps({**vars(given), **found}), flush=True)


if __name__ == "__main__":
    main()
