"""The canvas families in bf16 on a GPU: passes are recorded, and a fill gives the same text again. Needs CUDA."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from engine.canvas_serving.startup import Wanted, load_canvas_core
from engine.protocol.messages import Fill
from tests.fakes.checkpoints import writers
from tests.fakes.driving import drive

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]
FILL = Fill("1", "python", "def f(x):\n    return ", "\n\nprint(f(2))\n", max_tokens=16)


@pytest.mark.parametrize("layout", ["dream", "llada", "sdar", "diffusion-gemma"])
def test_a_fill_in_bf16_is_the_same_text_each_time(layout: str, tmp_path: Path) -> None:
    family = "diffusion_gemma" if layout == "diffusion-gemma" else "masked"
    folder = tmp_path / layout
    writers()[layout](folder, 0)
    texts = set()
    for _ in range(2):
        core = load_canvas_core(
            family, Wanted(folder, layout, layout, "cuda", "bf16", 0, 1), lambda _stage, _share: None
        )
        # The second fill of a core replays what the first one recorded.
        texts |= {drive(core, FILL)[0].text, drive(core, FILL)[0].text}
    assert len(texts) == 1
    assert core.facts.device.startswith("cuda")
