"""The vocabulary of a protocol case: what an editor does, and what it must see. Data; `protocol_player` acts on it.

A step is a TOML table whose `do` names one of `STEPS`; its other keys are the fields of that class, and the fields of
`Wanted` where something is answered (`protocol_parsing`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, get_args

Place: TypeAlias = tuple[int, int]
Span: TypeAlias = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What an answer must be. Fields of None are not looked at.

    `no_items`: it is empty, however that is said.
    `codes`: it is an error with one of these. `texts`: what the items, edits of holes or menu entries insert, in order.
    `first`: the same of the first one only. `range`: every item's. `most` and `least`: how many items.
    `heads`: what every text starts with. `every`, `whole`: patterns (`protocol_checks.matches`) of every item and of
    the result. `kinds`: of the code actions, in order. `becomes`: the document once the first item or the edit is in.
    `hunks`: how many changes the edit has. `without`: the documents when the first, second, ... change is left out.
    `same`: the result is what was sent, but for the keys it `adds`. `or_nothing`: an empty answer will do as well.
    """

    no_items: bool = False
    or_nothing: bool = False
    codes: tuple[int, ...] | None = None
    texts: tuple[str, ...] | None = None
    first: str | None = None
    range: Span | None = None
    least: int | None = None
    most: int | None = None
    heads: str | None = None
    every: dict[str, Any] | None = None
    whole: Any = None
    kinds: tuple[str, ...] | None = None
    becomes: str | None = None
    hunks: int | None = None
    without: tuple[str, ...] | None = None
    same: bool = False
    adds: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Open:
    """`text` may hold one cursor `‸` or one selection `⟦…⟧`; the document is `text` `times` over.

    One that is not `followed` is too long for `EditorModel`: every place in it has to be said.
    """

    text: str
    uri: str = "a.py"
    language: str = "python"
    version: int = 1
    times: int = 1
    followed: bool = True


@dataclass(frozen=True, slots=True)
class Change:
    """`text` replaces `span`, or everything."""

    text: str
    span: Span | None = None
    uri: str = "a.py"


@dataclass(frozen=True, slots=True)
class Type:
    """`text` goes in at the cursor, all at once or `by_key`."""

    text: str
    uri: str = "a.py"
    by_key: bool = False


@dataclass(frozen=True, slots=True)
class Back:
    """`count` characters before the cursor go, in one change."""

    count: int = 1
    uri: str = "a.py"


@dataclass(frozen=True, slots=True)
class Undo:
    """The last change is taken back, in one change."""

    uri: str = "a.py"


@dataclass(frozen=True, slots=True)
class Close:
    uri: str = "a.py"


@dataclass(frozen=True, slots=True)
class Ask:
    """A request: `what` names one of `protocol_requests.SUGAR`, or a method whose `params` are said.

    `at` is the position where it is not the cursor. `keep` names it for a later `answer`, `times` asks so many at once
    of which the last is looked at. `action` is the end of the kind of the code action that is resolved; with `stale`
    the document goes on between the offer and that, in its first line.
    """

    what: str
    wanted: Wanted
    uri: str = "a.py"
    at: Place | None = None
    span: Span | None = None
    trigger: str = "automatic"
    chosen: dict[str, Any] | None = None
    context: dict[str, Any] | None = None
    instruction: str = "tidy"
    action: str = ""
    spans: tuple[Span, ...] = ()
    params: Any = None
    keep: str = ""
    stale: bool = False
    times: int = 1


@dataclass(frozen=True, slots=True)
class Answer:
    """What comes for the request kept as `of`."""

    of: str
    wanted: Wanted


@dataclass(frozen=True, slots=True)
class Cancel:
    of: str


@dataclass(frozen=True, slots=True)
class Accept:
    """Item `item` of the last answer goes into the document, the cursor behind it; its command is run."""

    item: int = 0
    uri: str = "a.py"


@dataclass(frozen=True, slots=True)
class Apply:
    """The edit of the last answer goes into the document, in one step."""

    uri: str = "a.py"


@dataclass(frozen=True, slots=True)
class Text:
    """What the editor has now, and where its cursor is."""

    uri: str = "a.py"
    equals: str | None = None
    cursor: Place | None = None


@dataclass(frozen=True, slots=True)
class Engine:
    """What the engine has seen: it waits for `reached` requests; the other fields must hold then.

    `prefix`, `suffix`: of request `of`, whole; `ends`, `starts`: their inner ends. `shows`, `hides`: parts of them.
    `fields`: a pattern of the request. `fewest` and `most` bound the number of requests, `calls` states it.
    """

    reached: int = 0
    calls: int | None = None
    fewest: int | None = None
    most: int | None = None
    cancelled: int | None = None
    started: int | None = None
    of: int = -1
    prefix: str | None = None
    suffix: str | None = None
    ends: str | None = None
    starts: str | None = None
    shows: tuple[str, ...] = ()
    hides: tuple[str, ...] = ()
    fields: dict[str, Any] | None = None
    prefix_at_most: int | None = None


@dataclass(frozen=True, slots=True)
class Say:
    """A notification, as it is; `(null)` stands for null, which TOML cannot say."""

    method: str
    params: Any = None


@dataclass(frozen=True, slots=True)
class Release:
    """The engine's held answers go out."""


@dataclass(frozen=True, slots=True)
class State:
    """The engine changes its state."""

    state: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class Hears:
    """Exactly (or `at_least`) `times` messages of `method` have come from the server, each with `part` in its text."""

    method: str
    times: int = 1
    part: str = ""
    at_least: bool = False


@dataclass(frozen=True, slots=True)
class Configure:
    """What the editor answers when it is asked for its settings, by scope (`all` for the section of none).

    `pulled` waits until it was asked so many times in all.
    """

    settings: dict[str, Any] | None = None
    pulled: int = 0


@dataclass(frozen=True, slots=True)
class Pass:
    """The server's clock goes on."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Together:
    """Everything these steps send goes out in one write, before anything is heard."""

    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """The steps `times` over; `#` in their texts is the number of the round."""

    times: int
    steps: tuple[dict[str, Any], ...]


@dataclass(frozen=True, slots=True)
class Ready:
    """Waits until the engine behind the server is ready."""


@dataclass(frozen=True, slots=True)
class Idle:
    """For so long nothing happens, and the server's process does nothing, nor do the engines."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Left:
    """No document is left in the server, no job, and of no kind of object more than at the last such step."""


@dataclass(frozen=True, slots=True)
class End:
    """The end of the session: `how` is exit, killed or input; `code` is the status that the server ends with."""

    how: str
    code: int | None = None


@dataclass(frozen=True, slots=True)
class EngineGone:
    """Waits until the engine's process has left by itself."""


@dataclass(frozen=True, slots=True)
class SameEngine:
    """All editors are served by one engine process, which is the only one."""


@dataclass(frozen=True, slots=True)
class Core:
    """What a real engine's core did: `mark` waits for the first step of its first job and counts them, `more` is how
    many more there may be, `abandoned` how many jobs were ended."""

    mark: bool = False
    more: int | None = None
    abandoned: int | None = None


@dataclass(frozen=True, slots=True)
class Log:
    """What the server's log is without, and with, or that it is `empty`; looked at when the session has ended."""

    hides: str = ""
    shows: str = ""
    empty: bool = False


Step: TypeAlias = (
    Open | Change | Type | Back | Undo | Close | Ask | Answer | Cancel | Accept | Apply | Text | Engine | Say | Release
    | State | Hears | Configure | Pass | Together | Repeat | Ready | Idle | Left | End | EngineGone | SameEngine
    | Core | Log
)  # fmt: skip
STEPS: Mapping[str, type[Any]] = {
    kind.__name__.lower(): kind for kind in get_args(Step) if kind not in (EngineGone, SameEngine)
} | {"engine_gone": EngineGone, "same_engine": SameEngine}


@dataclass(frozen=True, slots=True)
class Turn:
    """A step and the editor that takes it, by number."""

    step: Step
    editor: int = 0
