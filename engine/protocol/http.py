"""How the protocol is spoken over HTTP, which a team's engine does: names both sides agree on.

A request's body is one message as msgpack, without its length; a response's is frames as on a socket. A frame of no
bytes says that the job goes on. Owns no sockets. (Documented for people in docs/team.md.)
"""

from __future__ import annotations

from engine.protocol.framing import HEADER

MEDIA_TYPE = "application/vnd.lacuna.frames"
PROTOCOL_HEADER = "Lacuna-Protocol"
MODEL_HEADER = "Lacuna-Model"
JOBS, FACTS, STATUS, HEALTH = "/v1/jobs", "/v1/facts", "/v1/status", "/healthz"

GOES_ON = HEADER.pack(0)
GOES_ON_EVERY_S = 10.0
"""Less than any proxy, and any client of ours, waits for the next byte."""
