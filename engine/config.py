"""`EngineConfig`: everything an engine process is told at its start, and its one reader.

Values come from the command line, else from the environment, else from the defaults here. Unknown names and values
that do not fit are errors: a typo must never become a default.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, get_args, get_type_hints

from engine.hole_order import HoleOrder
from engine.protocol.address import Transport
from engine.protocol.errors import EngineError
from engine.protocol.model_name import as_written

DEFAULT_MODEL = "qwen2.5-coder-0.5b"
DEFAULT_IDLE_LIMIT_S = 30 * 60.0
ENV_PREFIX = "LACUNA_"
# More threads than this only wait for each other, and thousands of them hang the machine.
THREADS_PER_CORE = 4
_MOST: Mapping[str, int] = {"diffusion_share": 100, "metrics_port": 65535}
_DEVICE = re.compile(r"auto|cpu|cuda(:\d{1,3})?")
_TRUTH: Mapping[str, bool] = {"1": True, "true": True, "on": True, "0": False, "false": False, "off": False}


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """What to load and how to serve it.

    `model` is a name of the registry, or the absolute path of a GGUF file or a model's folder. `family` and
    `precision` of "auto" mean what the model's registry entry recommends; `threads` and `window_tokens` of 0
    likewise. `idle_limit_s` is the time without a job after which the engine leaves, 0 for never. `step_limit_s` is
    the time after which a step is taken to hang and the engine leaves it behind, 0 for many times what the dearest pass
    takes here. `adapter` is whether the family's low-rank patch is applied where there is one. `cache_mib` bounds the
    memory, in MiB, of prompts kept between requests. `hole_order` is which of several holes is filled first where they
    do not share a canvas. `diffusion_share` is the percentage of jobs that may take the diffusion route where there is
    a causal one. `metrics_port` is a port of the loopback interface for Prometheus to ask, 0 for none.
    """

    model: str = DEFAULT_MODEL
    family: str = "auto"
    precision: str = "auto"
    device: str = "auto"
    threads: int = 0
    window_tokens: int = 0
    idle_limit_s: float = DEFAULT_IDLE_LIMIT_S
    step_limit_s: float = 0.0
    transport: Transport = "auto"
    adapter: bool = True
    cache_mib: int = 176
    hole_order: HoleOrder = "least_doubt"
    diffusion_share: float = 100.0
    metrics_port: int = 0


def read_config(options: Mapping[str, object], env: Mapping[str, str], *, cores: int | None = None) -> EngineConfig:
    """The configuration from `options` (by field name; None means not given), else `LACUNA_<FIELD>` in `env`.

    `cores`: how many this machine has, which bounds the threads; None asks the system. Raises
    EngineError(bad_request) naming the option or variable at fault.
    """
    most_threads = THREADS_PER_CORE * (cores or os.cpu_count() or 1)
    kinds = get_type_hints(EngineConfig)
    if unknown := sorted(options.keys() - kinds.keys()):
        raise _bad(unknown[0], "is no setting of the engine")
    given: dict[str, Any] = {}
    for field in fields(EngineConfig):
        variable = ENV_PREFIX + field.name.upper()
        if (option := options.get(field.name)) is not None:
            source, value = f"--{field.name.replace('_', '-')}", option
        elif variable in env:
            source, value = variable, env[variable]
        else:
            continue
        given[field.name] = _fitting(source, field.name, _convert(source, kinds[field.name], value), most_threads)
    return EngineConfig(**given)


def _fitting(source: str, name: str, value: Any, most_threads: int) -> Any:
    """`value`, if the setting `name` can have it on this machine."""
    if name == "threads" and value > most_threads:
        raise _bad(source, f"must be at most {most_threads} here ({THREADS_PER_CORE} for each core), not {value}")
    if name in _MOST and value > _MOST[name]:
        raise _bad(source, f"must be at most {_MOST[name]}, not {value}")
    if name == "model":
        return as_written(value)
    if name == "device":
        value = value.lower()
        if not _DEVICE.fullmatch(value):
            raise _bad(source, f"must be auto, cpu, cuda or cuda:N, not {value[:40]!r}")
    return value


def _convert(source: str, kind: Any, value: object) -> object:
    text = str(value).strip().lower() if kind is not str else str(value).strip()
    if kind is bool:
        if text not in _TRUTH:
            raise _bad(source, "must be on or off")
        return _TRUTH[text]
    if choices := get_args(kind):
        if text not in choices:
            raise _bad(source, f"must be one of {', '.join(choices)}")
        return text
    if kind in (int, float):
        return _number(source, kind, text)
    if not text:
        raise _bad(source, "must not be empty")
    return text


def _number(source: str, kind: Any, text: str) -> object:
    try:
        number = kind(text)
    except ValueError:
        raise _bad(source, f"must be a number, not {text[:40]!r}") from None
    # Written this way round so that "nan" is refused as well.
    if not 0 <= number < 1e9:
        raise _bad(source, "must be 0 or more, and less than a thousand million")
    return number


def _bad(source: str, fault: str) -> EngineError:
    return EngineError("bad_request", f"{source} {fault}", "see `lacuna engine run --help`")
