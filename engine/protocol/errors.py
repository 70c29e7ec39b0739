"""Failure kinds as data: what can go wrong in the engine, and what a person does about it.

EngineError                      base: carries kind, message, remedy; becomes a `Failed` reply
    kinds of the connection      bad_frame, protocol_version, bad_token, unknown_message, unsafe_address, gone
    kinds of the engine          loading, draining, model_missing, model_corrupt, model_unsupported,
                                 no_space, out_of_memory, internal
    kinds of another machine     unreachable, timed_out, overloaded, bad_reply (what answers speaks another language)
    kinds of a request           bad_request, window_exceeded, round_trip,
                                 unsatisfied (no text was found that obeys the constraints),
                                 quota_exceeded (of a team's engine: one user has asked for too much)
"""

from __future__ import annotations

FAILURE_KINDS: frozenset[str] = frozenset(
    {
        "bad_frame",
        "protocol_version",
        "bad_token",
        "unknown_message",
        "unsafe_address",
        "gone",
        "loading",
        "draining",
        "model_missing",
        "model_corrupt",
        "model_unsupported",
        "no_space",
        "out_of_memory",
        "internal",
        "unreachable",
        "timed_out",
        "overloaded",
        "bad_reply",
        "bad_request",
        "window_exceeded",
        "round_trip",
        "unsatisfied",
        "quota_exceeded",
    }
)


class EngineError(Exception):
    """A failure a person can act on. `kind` is one of `FAILURE_KINDS`."""

    def __init__(self, kind: str, message: str, remedy: str) -> None:
        if kind not in FAILURE_KINDS:
            raise ValueError(f"unknown failure kind {kind!r}")
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.remedy = remedy
