"""A core of canvases lets somebody look on, as the other one does."""

from __future__ import annotations

from engine.canvas_serving.core import CanvasCore
from engine.protocol.messages import Fill
from engine.trace.watching import Watcher
from engine.watchable import WatchableCore
from tests.fakes.scripted_canvas import ScriptedCanvasModel, saying


def test_every_step_of_a_canvas_is_told_and_watching_can_stop() -> None:
    core = CanvasCore(ScriptedCanvasModel(saying("abcd")))
    assert isinstance(core, WatchableCore)
    watcher = Watcher(core.tokenizer)
    core.watch(watcher)
    told = sum(1 for _ in core.start(Fill("1", "python", "x", "y", max_tokens=4)))
    assert len(watcher.steps) == told > 0
    assert any(token.others for step in watcher.steps for token in step.tokens)
    core.watch(None)
    assert sum(1 for _ in core.start(Fill("2", "python", "x", "y", max_tokens=4))) == told
    assert len(watcher.steps) == told
