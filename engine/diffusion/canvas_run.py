"""One canvas on its way from noise to text: `CanvasRun` takes a prediction and makes the next canvas from it.

Mask families settle places for good (but for `remask`); uniform families judge every open place anew in each step, and
what is not accepted is drawn anew, so that an accepted token may change again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import torch

from engine.canvas import FREE, SETTLED, Canvas
from engine.diffusion.constraint import Constraint
from engine.diffusion.drawing import Choice
from engine.diffusion.halting import StableAndConfident
from engine.diffusion.layout import Layout
from engine.diffusion.reading import Admission, Others, Places, Reading, Scratch, read, spread
from engine.diffusion.resizing import Resizer
from engine.diffusion.samplers import Sampler, accept
from engine.diffusion.samplers.remask import Progress, edited, reopened
from engine.diffusion.sampling import SamplingConfig
from engine.diffusion.schedules import due, share_settled, temperatures
from engine.models.canvas_model import CanvasFacts, Prediction, StepInput

_EDIT_STEPS = 16
"""Most steps of token-to-token editing once a canvas is full, as LLaDA 2.1 has it."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What is the same for every canvas of a job. others: see `Choice`."""

    facts: CanvasFacts
    config: SamplingConfig
    sampler: Sampler
    admission: Admission
    constraint: Constraint | None
    generator: torch.Generator
    others: int = 0
    scratch: Scratch = field(default_factory=Scratch.on_best_kernel)

    @property
    def uniform(self) -> bool:
        return self.facts.noise == "uniform"


class CanvasRun:
    """The state between two steps, on the host. `offset`: tokens in front of the canvas, which blocks count from.

    resizer: of a family that finds the length of its holes itself. verify: whether a full canvas is judged once more
    by an exact pass, for approximate caches.
    """

    def __init__(
        self, rules: Rules, layout: Layout, steps: int, *, offset: int, resizer: Resizer | None, verify: bool
    ) -> None:
        self._rules = rules
        self._layout = layout
        self._offset = offset
        self._resizer = resizer
        self._unverified, self._verifying = verify, False
        self._stop = StableAndConfident(rules.config.stable_steps, rules.config.stop_entropy)
        self._conditioning: torch.Tensor | None = None
        self._edits_left = _EDIT_STEPS if rules.config.remask == "edit" else 0
        self._judging = bool(layout.doubted.any())
        self._block = -1
        self._scope = torch.ones_like(layout.held)
        self._started = 0
        self._temperatures: tuple[float, ...] = ()
        self.canvas = layout.canvas
        self.guess = layout.canvas.ids
        """[n] int64, the best text so far: settled tokens, and the likeliest ones at free places."""
        self.chance = torch.where(layout.canvas.free, torch.nan, 1.0)
        """[n] float32, the probability of each guess when it was made; NaN where there is only noise as yet."""
        self.entropy = torch.zeros_like(self.chance)
        self.others: Others | None = None
        self.accepted = torch.zeros_like(layout.held)
        self.changed = torch.zeros_like(layout.held)
        self.steps_done = 0
        self._plan(steps)
        # A warm start with nothing re-opened is finished before it begins.
        self.finished = not bool((self._open() | layout.doubted).any())

    @property
    def hole(self) -> torch.Tensor:
        """[n] int64, the hole of each place."""
        return self._layout.hole

    @property
    def steps(self) -> int:
        """How many steps it takes at most, as far as is known."""
        return max(self.steps_done, self._started + len(self._temperatures))

    @property
    def needs_exact_step(self) -> bool:
        """Whether the next step judges what stands there, or mends it at last: stale caches cannot."""
        return self._judging or self._verifying

    def input(self) -> StepInput:
        """What the model is to be fed in the next step."""
        conditioning = self._conditioning if self._rules.config.self_conditioning else None
        return StepInput(self.canvas, conditioning, self._temperature() or 1.0)

    def advance(self, prediction: Prediction) -> None:
        """Take one denoising step."""
        before = self.guess
        open_ = self._open()
        reading = self._read(prediction.logits, open_)
        self._conditioning = prediction.conditioning
        self.entropy, self.others = reading.entropy, reading.others
        usable = open_ & ~reading.best.isnan()
        self.guess = torch.where(usable, reading.likeliest, self.guess)
        self.chance = torch.where(usable, reading.best, self.chance)
        done = self._stop.update(self.guess, reading.entropy, open_ & (self.hole >= 0))
        if self._rules.uniform:
            self._accept_uniform(reading, open_)
            moving = True
        else:
            moving = self._accept_masked(reading, open_)
        self.changed = self.guess != before
        self.steps_done += 1
        if not self._rules.uniform:
            self._resize()
            self._cut_at_end()
        self._finish(done=done, moving=moving)

    def _plan(self, steps: int) -> None:
        config = self._rules.config
        self._started = self.steps_done
        self._temperatures = temperatures(config.temperature_start, config.temperature_end, steps)

    def _step(self) -> int:
        return self.steps_done - self._started

    def _temperature(self) -> float:
        return self._temperatures[min(self._step(), len(self._temperatures) - 1)]

    def _open(self) -> torch.Tensor:
        """[n] bool, the places a step may accept."""
        if self._rules.uniform:
            return ~self.canvas.locked & ~self._layout.held
        free = self.canvas.free
        if self._rules.facts.block and bool(free.any()):
            self._enter_block(free)
        return free & self._scope

    def _enter_block(self, free: torch.Tensor) -> None:
        """Only the leftmost block that is not full is denoised; each has the steps of a canvas of its own."""
        places = torch.arange(self._offset, self._offset + free.shape[0])
        blocks = places.div(self._rules.facts.block, rounding_mode="floor")
        block = int(blocks[int(free.int().argmax())])
        self._scope = blocks == block
        if block != self._block:
            self._block = block
            self._plan(self._rules.config.steps or int((free & self._scope).sum()))

    def _correctable(self) -> torch.Tensor:
        """[n] bool, settled places that self-correction may change: never those of blocks that are done."""
        return self.canvas.settled & ~self._layout.held & self._scope

    def _read(self, logits: torch.Tensor, open_: torch.Tensor) -> Reading:
        rules = self._rules
        wanted = open_ | self._layout.doubted
        if rules.config.remask != "none" and not rules.uniform:
            wanted = wanted | self._correctable()
        rows = wanted.nonzero().squeeze(-1)
        logits = logits.detach()
        if rules.constraint is not None:
            admitted = rules.admission.apply(logits.to(torch.float32, copy=True), self._layout.ends)
            written = self.written()
            logits = admitted
            logits[: written.length] = rules.constraint.constrain(written, admitted[: written.length])
        ends, holes, resizer = self._layout.ends[rows], self.hole[rows], self._resizer

        def forbid(held: torch.Tensor, start: int) -> None:
            mine = slice(start, start + held.shape[0])
            rules.admission.apply(held, ends[mine])
            if resizer is not None:
                resizer.restrict(held, holes[mine], self.hole)

        whole = rows.shape[0] == wanted.shape[0]
        places = Places(None if whole else rows, self.canvas.ids[rows], forbid)
        config = rules.config
        choice = Choice(self._temperature(), config.deterministic, config.top_p, config.draws, rules.others)
        reading = read(logits, places, choice, rules.generator, rules.scratch)
        return reading if whole else spread(reading, rows, self.canvas)

    def _accept_uniform(self, reading: Reading, open_: torch.Tensor) -> None:
        """Accept from scratch; whatever is not accepted is drawn anew. The noise is of the whole canvas, always."""
        config = self._rules.config
        adaptive = config.schedule == "adaptive"
        places = int(open_.sum()) if not adaptive else 0
        wanted = 1 if adaptive else due(config.schedule, self._step(), len(self._temperatures), places, 0)
        self.accepted = accept(self._rules.sampler, reading, open_, wanted, exactly=not adaptive)
        drawn = self._noise()
        ids = torch.where(open_, torch.where(self.accepted, reading.chosen, drawn), self.canvas.ids)
        state = torch.where(open_, torch.where(self.accepted, SETTLED, FREE), self.canvas.state).to(torch.uint8)
        confidence = torch.where(open_, torch.where(self.accepted, reading.confidence, 0.0), self.canvas.confidence)
        self.canvas = Canvas(ids, state, confidence)

    def _noise(self) -> torch.Tensor:
        return torch.randint(self._rules.facts.vocab_size, (self.canvas.length,), generator=self._rules.generator)

    def _accept_masked(self, reading: Reading, open_: torch.Tensor) -> bool:
        """Settle what is accepted, re-open what is doubted; whether anything settled was changed."""
        config, canvas = self._rules.config, self.canvas
        adaptive = config.schedule == "adaptive"
        again = self._reopened(reading)
        replaced = torch.zeros_like(again)
        if config.remask == "edit":
            replaced = edited(config.remask_strength, reading, self._correctable(), canvas.ids)
        inside = (self.hole >= 0) & ~self._layout.held & self._scope
        places, settled = torch.stack([inside.sum(), (inside & canvas.settled & ~again).sum()]).tolist()
        wanted = due(config.schedule, self._step(), len(self._temperatures), places, settled)
        self.accepted = accept(self._rules.sampler, reading, open_, wanted, exactly=not adaptive)
        ids = torch.where(self.accepted, reading.chosen, torch.where(replaced, reading.likeliest, canvas.ids))
        ids = torch.where(again, self._rules.facts.mask_id, ids)
        state = torch.where(self.accepted, SETTLED, torch.where(again, FREE, canvas.state)).to(torch.uint8)
        judged = torch.where(replaced, reading.best, reading.present)
        unjudged = ~self._correctable() | judged.isnan()
        confidence = torch.where(self.accepted, reading.confidence, torch.where(unjudged, canvas.confidence, judged))
        self.canvas = Canvas(ids, state, torch.where(again, 0.0, confidence))
        self.guess = torch.where(self.canvas.settled, ids, self.guess)
        self.chance = torch.where(self.accepted, reading.confidence, torch.where(replaced, reading.best, self.chance))
        return bool((again | replaced).any())

    def _reopened(self, reading: Reading) -> torch.Tensor:
        rules, step, steps = self._rules, self._step(), len(self._temperatures)
        doubted = self._layout.doubted
        again = doubted & ~rules.sampler.trusts(reading) & ~reading.present.isnan()
        if rules.config.remask != "none":
            schedule = rules.config.schedule
            progress = Progress(share_settled(schedule, step, steps), share_settled(schedule, step + 1, steps))
            strength, settled = rules.config.remask_strength, self._correctable() & ~doubted
            again |= reopened(rules.config.remask, strength, reading, settled, progress, rules.generator)
        return again

    def _resize(self) -> None:
        """Carry out accepted expand and delete ids; shortly before the steps run out the size becomes final."""
        if self._resizer is None:
            return
        free, ids = self.canvas.free.tolist(), self.canvas.ids.tolist()
        places = self._resizer.rearranged(ids, free, self.hole.tolist())
        if places is not None:
            self._take(places)
        self._resizer.frozen |= len(self._temperatures) - self._step() <= sum(self.canvas.free.tolist())

    def _take(self, places: Sequence[tuple[int, bool]]) -> None:
        """Go on with `places`, each an old place and whether it is a mask now."""
        source = torch.tensor([place for place, _ in places], dtype=torch.int64)
        blank = torch.tensor([is_blank for _, is_blank in places], dtype=torch.bool)
        canvas, mask = self.canvas, self._rules.facts.mask_id
        self.canvas = Canvas(
            torch.where(blank, mask, canvas.ids[source]),
            torch.where(blank, FREE, canvas.state[source]).to(torch.uint8),
            torch.where(blank, 0.0, canvas.confidence[source]),
        )
        self.guess = torch.where(blank, mask, self.guess[source])
        self.chance = torch.where(blank, torch.nan, self.chance[source])
        self.entropy, self.accepted = self.entropy[source], self.accepted[source]
        self.changed = self.changed[source] | blank
        self.others = None if self.others is None else self.others.taken(source)
        self._layout, self._scope = self._layout.taken(self.canvas, source), self._scope[source]
        self._conditioning = None
        self._stop.forget()

    def _cut_at_end(self) -> None:
        """Nothing right of a settled end id belongs to the text: those places go, or hold the end id where the
        family's canvas cannot shrink."""
        ending = self._rules.admission.ending
        found = torch.isin(self.canvas.ids, ending) & self._layout.ends & self.canvas.settled
        if not bool(found.any()):
            return
        first = int(found.int().argmax())
        if self._rules.facts.canvas_length:
            self._end_here(found)
        elif first + 1 < self.canvas.length:
            self._take([(place, False) for place in range(first + 1)])

    def _end_here(self, found: torch.Tensor) -> None:
        """Everything right of the first place of `found` ([n] bool) holds the same end id, for good."""
        first = found.int().argmax()
        behind = (found.int().cumsum(dim=-1) > 0) & ~self.canvas.locked
        behind[first] = False
        self.guess = torch.where(behind, self.guess[first], self.guess)
        self.chance = self.chance.masked_fill(behind, 1.0)
        ids = torch.where(behind, self.canvas.ids[first], self.canvas.ids)
        self.canvas = replace(self.canvas, ids=ids, state=self.canvas.state.masked_fill(behind, SETTLED))

    def _finish(self, *, done: bool, moving: bool) -> None:
        if not self._rules.uniform:
            if done:
                self._settle_guess(self._open())
            settled = done or bool(self.accepted.any())
            self.finished = self._masked_finished(int(self.canvas.free.sum()), settled=settled, moving=moving)
        elif done or self._step() >= len(self._temperatures):
            self.finished = True
            self._settle_guess(self._open())
            self._end_here(torch.isin(self.guess, self._rules.admission.ending) & self._layout.ends)

    def _settle_guess(self, places: torch.Tensor) -> None:
        """Take the likeliest token at `places` ([n] bool), wherever one is known."""
        known = places & ~self.chance.isnan()
        self.canvas = Canvas(
            torch.where(known, self.guess, self.canvas.ids),
            self.canvas.state.masked_fill(known, SETTLED),
            torch.where(known, self.chance, self.canvas.confidence),
        )

    def _masked_finished(self, free: int, *, settled: bool, moving: bool) -> bool:
        if self._judging:
            self._judging = False
            self._layout = replace(self._layout, doubted=torch.zeros_like(self.accepted))
            self._plan(self._rules.config.steps or max(1, free))
        if free:
            if self._step() < len(self._temperatures):
                return False
            # Out of steps with places left: they wait for their block, or the model says nothing usable of them.
            self._plan(free)
            return not settled
        # The first pass over a full canvas is due in any case, each other one only after a change.
        if self._edits_left > 0 and (moving or self._edits_left == _EDIT_STEPS):
            self._edits_left -= 1
            return False
        if self._unverified:
            self._unverified, self._verifying = False, True
            self._layout = replace(self._layout, doubted=self.canvas.settled & ~self._layout.held)
            self._judging = bool(self._layout.doubted.any())
            return not self._judging
        return True

    def written(self) -> Canvas:
        """The canvas up to its last hole: what a constraint is to see. Known text and padding behind it are not made
        here. Waits for the device."""
        places = (self.hole >= 0).nonzero()
        # A family that changes lengths may have taken every place away.
        end = int(places.max()) + 1 if places.numel() else 0
        return Canvas(self.canvas.ids[:end], self.canvas.state[:end], self.canvas.confidence[:end])

    def review(self, constraint: Constraint, *, is_last: bool) -> bool:
        """Let a constraint judge the full canvas and re-open what it names; whether anything was."""
        written = self.written()
        named = constraint.review(written, is_last=is_last)
        if named is None or not bool(named.any()):
            return False
        places = torch.zeros_like(self.canvas.locked)
        places[: written.length] = named
        self.denoise_anew(places)
        return True

    def shown(self) -> Canvas:
        """The canvas with the best guess at each place instead of noise."""
        return replace(self.canvas.rewritten(self.guess), confidence=self.chance.nan_to_num(0.0))

    def denoise_anew(self, places: torch.Tensor) -> None:
        """Re-open `places` ([n] bool) of a finished canvas; everything else in it stays as it is."""
        places = places & ~self.canvas.locked & (self.hole >= 0)
        kept = self.canvas.rewritten(self.guess)
        noise = self._noise() if self._rules.uniform else torch.full_like(kept.ids, self._rules.facts.mask_id)
        state = torch.where(kept.locked, kept.state, SETTLED).to(torch.uint8).masked_fill(places, FREE)
        self.canvas = replace(kept, ids=torch.where(places, noise, kept.ids), state=state)
        self._layout = replace(self._layout, held=~places & ~kept.locked)
        self.chance = self.chance.masked_fill(places, torch.nan)
        self.finished = False
        self._conditioning = None
        self._stop.forget()
        self._block = -1
        self._plan(self._rules.config.steps or max(1, int(places.sum())))

    def outcome(self, holes: int) -> tuple[list[list[int]], list[list[float]]]:
        """The ids of each of `holes` holes, and their chances; a hole ends where nothing is known as yet."""
        ids: list[list[int]] = [[] for _ in range(holes)]
        chances: list[list[float]] = [[] for _ in range(holes)]
        hidden = frozenset() if self._resizer is None else self._resizer.ids
        for hole, token, chance in zip(self.hole.tolist(), self.guess.tolist(), self.chance.tolist(), strict=True):
            if hole >= 0 and token not in hidden:
                ids[hole].append(token)
                chances[hole].append(chance)
        return ids, chances
