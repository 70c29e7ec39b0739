"""What a denoising step costs outside the model's forward pass: `python -m tests.bench.step_overhead`.

The model is a stand-in of torch modules with the shape of a tiny transformer (random weights, attention over canvas and
prefix, one head over the vocabulary); only times are looked at. One line of JSON per case: the median forward, what the
step takes besides, and that as a share of the forward. Times are CPU time of this process, so that other programs count
less; `--wall` measures what a clock on the wall would.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import nn

from engine.diffusion.parallel import denoise_canvas
from engine.diffusion.sampling import SamplingConfig
from engine.diffusion.stopping import Limits
from engine.models.canvas_model import CanvasContext, CanvasFacts, CanvasJob, Known, Part, Prediction, StepInput
from engine.tokenizer import ByteTokenizer
from tests.fakes.scripted_canvas import ScriptedContext, scripted_facts, uniform_facts

PREFIX = 256
Clock = Callable[[], float]


@dataclass(frozen=True)
class Shape:
    hidden: int
    layers: int
    vocab: int


class StandIn(nn.Module):
    """A transformer of `shape` over canvas and prefix; logits in float32."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embed = nn.Embedding(shape.vocab, shape.hidden)
        layer = nn.TransformerEncoderLayer(
            shape.hidden, max(1, shape.hidden // 64), 4 * shape.hidden, dropout=0.0, batch_first=True, norm_first=True
        )
        self.body = nn.TransformerEncoder(layer, shape.layers, enable_nested_tensor=False)
        self.head = nn.Linear(shape.hidden, shape.vocab, bias=False)

    def forward(self, ids: torch.Tensor, prefix: torch.Tensor) -> torch.Tensor:
        rows = torch.cat([prefix, self.embed(ids)])
        logits: torch.Tensor = self.head(self.body(rows[None])[0, -ids.shape[0] :])
        return logits


@dataclass
class TimedModel:
    """Implements `CanvasModel` and keeps the time of every forward pass, in seconds by `clock`."""

    net: StandIn
    facts: CanvasFacts
    clock: Clock
    tokenizer: ByteTokenizer = field(default_factory=ByteTokenizer)
    times: list[float] = field(default_factory=list)

    def open(self, known: Known) -> CanvasContext:
        return ScriptedContext(known)

    def step(self, context: CanvasContext, inputs: Sequence[StepInput], *, refresh: bool = False) -> list[Prediction]:
        began = self.clock()
        prefix = torch.zeros(PREFIX, self.net.embed.embedding_dim)
        with torch.no_grad():
            found = [Prediction(self.net(each.canvas.ids, prefix)) for each in inputs]
        self.times.append(self.clock() - began)
        return found

    def read_on(self, context: CanvasContext) -> bool:
        return False

    def commit(self, context: CanvasContext, ids: Sequence[int]) -> None: ...

    def close(self, context: CanvasContext) -> None: ...


def measure(net: StandIn, facts: CanvasFacts, config: SamplingConfig, job: CanvasJob, clock: Clock) -> dict[str, float]:
    """Milliseconds of a whole step and of its forward, medians over the steps of a job; the first one warms up."""
    model = TimedModel(net, facts, clock)
    dice = torch.Generator().manual_seed(0)
    run = denoise_canvas(model, job, config, dice, limits=Limits(256), expired=lambda: False)
    whole = []
    while True:
        began = clock()
        if next(run, None) is None:
            break
        whole.append(clock() - began)
    outside = [step - forward for step, forward in zip(whole, model.times, strict=True)][1:]
    forward = statistics.median(model.times[1:])
    return {
        "steps": len(whole),
        "forward_ms": round(forward * 1000, 3),
        "outside_ms": round(statistics.median(outside) * 1000, 3),
        "overhead_percent": round(100 * statistics.median(outside) / forward, 1),
    }


def cases(vocab: int, steps: int) -> dict[str, tuple[CanvasFacts, SamplingConfig, CanvasJob]]:
    """What is measured: the recipe of each kind of family on a canvas of 256 places."""
    common = {"vocab_size": vocab, "forbidden": torch.zeros(vocab, dtype=torch.bool), "end_ids": frozenset({1})}
    mask = scripted_facts(**common, mask_id=0)
    uniform = uniform_facts(**common, canvas_length=256, trained_steps=steps)
    gap = CanvasJob(Known((2,) * PREFIX, (3,)), (Part(is_hole=True, length=256),))
    plain = SamplingConfig(steps=steps, schedule="linear")
    gemma = SamplingConfig(
        sampler="entropy_bound",
        temperature_start=0.8,
        temperature_end=0.4,
        deterministic=False,
        stable_steps=1,
        stop_entropy=0.005,
    )
    drawn = replace(plain, deterministic=False, temperature_start=0.6, temperature_end=0.6, top_p=0.95)
    small = CanvasJob(Known((2,) * PREFIX, (3,)), (Part(True, length=32), Part(False, (4,) * 224)))
    return {
        "uniform, entropy bound, drawn": (uniform, gemma, gap),
        "uniform, entropy bound, drawn as torch.multinomial does": (uniform, replace(gemma, draws="multinomial"), gap),
        "uniform, entropy bound, likeliest": (uniform, replace(gemma, deterministic=True), gap),
        "uniform, 32 free places, drawn": (replace(uniform, right_context=False), gemma, small),
        "mask, confidence, likeliest": (mask, plain, gap),
        "mask, entropy bound, nucleus": (mask, replace(drawn, sampler="entropy_bound", entropy_bound=0.0), gap),
        "mask, remask": (mask, replace(plain, sampler="remask", remask="cap", remask_strength=0.2), gap),
        "mask, remask, nucleus": (mask, replace(drawn, sampler="remask", remask="cap", remask_strength=0.1), gap),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hidden", type=int, default=512)
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--vocab", type=int, default=32768)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--wall", action="store_true")
    parser.add_argument("--only", default="", help="cases whose name holds this")
    asked = parser.parse_args()
    torch.set_num_threads(asked.threads)
    net = StandIn(Shape(asked.hidden, asked.layers, asked.vocab)).eval()
    clock = time.perf_counter if asked.wall else time.process_time
    for name, (facts, config, job) in cases(asked.vocab, asked.steps).items():
        if asked.only in name:
            print(json.dumps({"case": name, **vars(asked), **measure(net, facts, config, job, clock)}), flush=True)


if __name__ == "__main__":
    main()
