"""The two passes of DiffusionGemma over transformers' own modules: encode text, and predict a canvas on top of it.

The decoder's pass is written out here, module by module as in transformers, for two things its `forward` cannot do:
take self-conditioning as embeddings instead of logits, and place several canvases side by side over one prefix.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from typing import Any

import torch
from torch.nn.functional import pad

from engine.models.diffusion_gemma.resident import LayerShape, ResidentCache
from engine.protocol.errors import EngineError
from engine.runtime.joint_cache import JointCache, stacked_masks
from engine.runtime.replay import Replayer

WRITTEN_FOR = "5.24"
"""The version of transformers whose decoder's pass is written out here."""
_SOFT_ROWS = 64  # rows of self-conditioning at once: bounds what a vocabulary of probabilities takes


@dataclass(frozen=True, slots=True)
class CanvasRows:
    """A job's canvases: ids [canvases, n] on top of its own `cache`; soft: [canvases, n, hidden], zero for none."""

    cache: ResidentCache
    ids: torch.Tensor
    soft: torch.Tensor


class GemmaNetwork:
    """A `DiffusionGemmaForBlockDiffusion`, whose decoder is made to write its canvas behind the resident rows.

    The model may get its weights later.

    Raises EngineError(model_unsupported) for a version of transformers whose layers are not those this was written for.
    """

    def __init__(self, model: Any) -> None:
        self._encoder = model.model.encoder.language_model
        self._decoder = model.model.decoder
        self._head = model.lm_head
        self._softcap = float(model.final_logit_softcapping)
        self._layer_types = tuple(model.config.text_config.layer_types)
        self._replayer: Replayer | None = None
        for layer in self._decoder.layers:
            _require_known(layer)
            _write_in_place(layer.self_attn)

    @property
    def device(self) -> torch.device:
        """Where the model lives."""
        found: torch.device = self._decoder.embed_tokens.weight.device
        return found

    @property
    def dtype(self) -> torch.dtype:
        """Of embeddings, activations and resident rows."""
        found: torch.dtype = self._decoder.embed_tokens.weight.dtype
        return found

    @property
    def encoder_layers(self) -> tuple[Any, ...]:
        """The encoder's layers, which share all weights with the decoder's."""
        return tuple(self._encoder.layers)

    @property
    def width(self) -> int:
        """Values of an embedding."""
        return int(self._decoder.embed_tokens.weight.shape[1])

    @property
    def layer_shapes(self) -> tuple[LayerShape, ...]:
        """What the cache holds of each layer."""
        return tuple(
            LayerShape(
                kv_heads=attention.config.num_attention_heads // attention.num_key_value_groups,
                head_dim=attention.head_dim,
                window=attention.sliding_window or 0,
            )
            for attention in (layer.self_attn for layer in self._decoder.layers)
        )

    @torch.no_grad()
    def encode(self, cache: ResidentCache, ids: Sequence[int]) -> None:
        """Append `ids` to the cache, causally and in one pass."""
        start = cache.length
        cache.reserve(len(ids))
        rows = torch.tensor([ids], dtype=torch.int64, device=self.device)
        positions = torch.arange(start, start + len(ids), device=self.device)[None]
        try:
            self._encoder(input_ids=rows, position_ids=positions, cache=cache)
        except BaseException:
            cache.truncate(start)  # some layers may have written, others not
            raise

    @torch.no_grad()
    def predict(self, cache: ResidentCache, ids: torch.Tensor, soft: torch.Tensor) -> torch.Tensor:
        """Hidden states [canvases, n, hidden] of canvases `ids` [canvases, n], each for itself on top of the cache.

        soft: [canvases, n, hidden], the soft embeddings of self-conditioning, zero for none.
        """
        cache.reserve(ids.numel())
        key = (cache.length, *(store.data_ptr() for store in cache.stores))
        return self.replayer.run(key, partial(self._decode, cache), ids, soft)

    @property
    def replayer(self) -> Replayer:
        """What runs the steps of a canvas, which differ in nothing but their ids and soft embeddings."""
        if self._replayer is None:  # where the weights are is known once they are there
            self._replayer = Replayer.of_device(self.device)
        return self._replayer

    def replay_with(self, replayer: Replayer) -> None:
        """Run the steps with another one."""
        self._replayer = replayer

    @torch.no_grad()
    def predict_together(self, jobs: Sequence[CanvasRows]) -> list[torch.Tensor]:
        """As `predict` for each of several jobs, in one pass: a row of the batch is a job, padded to the longest."""
        sizes = [job.ids.numel() for job in jobs]
        longest = max(sizes)
        appends = [job.cache.with_canvas for job in jobs]
        cache = JointCache(len(self._layer_types), appends, [(1, size) for size in sizes])
        ids = torch.cat([pad(job.ids.reshape(1, -1), (0, longest - job.ids.numel())) for job in jobs])
        soft = torch.cat([pad(job.soft.flatten(0, 1)[None], (0, 0, 0, longest - job.ids.numel())) for job in jobs])
        places = [self._places(job.cache, *job.ids.shape) for job in jobs]
        positions = torch.cat([pad(place, (0, longest - place.shape[1])) for place in places])
        masks = {kind: self._joint_mask(kind, jobs, longest) for kind in set(self._layer_types)}
        hidden = self._layers(cache, ids, soft, positions, masks)
        return [row[:size].view(*job.ids.shape, -1) for row, size, job in zip(hidden, sizes, jobs, strict=True)]

    def _decode(self, cache: ResidentCache, ids: torch.Tensor, soft: torch.Tensor) -> torch.Tensor:
        canvases, length = ids.shape
        masks = {kind: self._mask(cache, kind, canvases, length) for kind in set(self._layer_types)}
        positions = self._places(cache, canvases, length)
        soft = soft.reshape(1, canvases * length, -1)
        return self._layers(cache, ids.reshape(1, -1), soft, positions, masks).view(canvases, length, -1)

    def _layers(
        self,
        cache: ResidentCache | JointCache,
        ids: torch.Tensor,
        soft: torch.Tensor,
        positions: torch.Tensor,
        masks: Mapping[str, torch.Tensor | None],
    ) -> torch.Tensor:
        """ids, positions: [rows, n]. soft: [rows, n, hidden]. masks: by the kind of layer. [rows, n, hidden]."""
        decoder = self._decoder
        hidden = decoder.self_conditioning(decoder.embed_tokens(ids), soft)
        rotary = {kind: decoder.rotary_emb(hidden, positions, kind) for kind in masks}
        for kind, layer in zip(self._layer_types, decoder.layers, strict=True):
            hidden = layer(
                hidden,
                position_embeddings=rotary[kind],
                attention_mask=masks[kind],
                position_ids=positions,
                cache=cache,
            )
        normed: torch.Tensor = decoder.norm(hidden)
        return normed

    def _places(self, cache: ResidentCache, canvases: int, length: int) -> torch.Tensor:
        """[1, canvases * length] int64: every canvas stands right behind the cache."""
        return torch.arange(cache.length, cache.length + length, device=self.device).repeat(canvases)[None]

    def _joint_mask(self, kind: str, jobs: Sequence[CanvasRows], longest: int) -> torch.Tensor:
        """[jobs, 1, longest, most that a job sees] bool."""
        own = []
        for job in jobs:
            canvases, length = job.ids.shape
            seen = job.cache.visible(self._layer_types.index(kind)) + job.ids.numel()
            mask = self._mask(job.cache, kind, canvases, length)
            if mask is None:
                mask = torch.ones((1, 1, job.ids.numel(), seen), dtype=torch.bool, device=self.device)
            own.append(mask)
        return stacked_masks(own, longest, max(mask.shape[3] for mask in own))

    @torch.no_grad()
    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """Softcapped float32 logits [n, vocab] of hidden states [n, hidden]."""
        raw: torch.Tensor = self._head(hidden).float()
        return raw.div_(self._softcap).tanh_().mul_(self._softcap)

    @torch.no_grad()
    def soft_embeddings(self, logits: torch.Tensor, temperature: float) -> torch.Tensor:
        """The mean embedding [n, hidden] under softmax(logits / temperature); of the likeliest id at temperature 0.

        Rounds as transformers does, which hands the divided logits over in the embeddings' dtype.
        """
        if temperature == 0:
            return self.embeddings(logits.argmax(dim=-1))
        weight, scale = self._decoder.embed_tokens.weight, self._decoder.embed_tokens.embed_scale.to(self.dtype)
        soft = torch.empty((logits.shape[0], weight.shape[1]), dtype=self.dtype, device=logits.device)
        for start in range(0, logits.shape[0], _SOFT_ROWS):
            rows = slice(start, start + _SOFT_ROWS)
            cooled = (logits[rows] / temperature).to(self.dtype)
            soft[rows] = cooled.softmax(dim=-1, dtype=torch.float32).to(self.dtype) @ weight * scale
        return soft

    @torch.no_grad()
    def embeddings(self, ids: torch.Tensor) -> torch.Tensor:
        """The embeddings [n, hidden] of `ids` [n]."""
        found: torch.Tensor = self._decoder.embed_tokens(ids)
        return found

    def _mask(self, cache: ResidentCache, kind: str, canvases: int, length: int) -> torch.Tensor | None:
        """[1, 1, rows, seen] bool, None when every row may see everything: a canvas sees the past and itself only."""
        if canvases == 1:
            return None
        past = cache.visible(self._layer_types.index(kind))
        canvas = torch.arange(canvases, device=self.device).repeat_interleave(length)
        own = canvas[:, None] == canvas[None, :]
        return torch.cat([own.new_ones((own.shape[0], past)), own], dim=1)[None, None]


def _require_known(layer: Any) -> None:
    known = callable(getattr(layer.self_attn, "append_to_cache", None))
    if not known or "cache" not in inspect.signature(layer.forward).parameters:
        raise EngineError(
            "model_unsupported",
            f"DiffusionGemma reads its cache in another way in transformers {version('transformers')}",
            f"install transformers {WRITTEN_FOR}",
        )


def _write_in_place(attention: Any) -> None:
    """Let a decoder layer's attention place its canvas behind the resident rows, where it would copy both together."""
    attention.append_to_cache = partial(_append, attention.layer_idx, attention.append_to_cache)


def _append(
    layer: int, concatenate: Any, cache: Any, keys: torch.Tensor, values: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    if isinstance(cache, ResidentCache | JointCache):
        return cache.with_canvas(layer, keys, values)
    found: tuple[torch.Tensor, torch.Tensor] = concatenate(cache, keys, values)
    return found
