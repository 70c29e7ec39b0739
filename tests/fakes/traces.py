"""Recordings made by hand: one gap with every state and kind of token, and text that would like to be markup."""

from __future__ import annotations

from engine.trace.recording import GapTrace, Recording, Step, Token

HOSTILE = "</script><script>document.title='taken'</script><!-- <b>&amp; {{script}} \u2028"


def recording() -> Recording:
    """Two gaps: three steps on hostile text, and none at all."""
    sure = Token("return", "settled", 0.97, 0.2, "the model", (("pass", 0.02),))
    return Recording(f"a{HOSTILE}.py", (("model", HOSTILE),), (_gap(sure), GapTrace(9, "x", "y", (), None, "nothing")))


def _gap(sure: Token) -> GapTrace:
    noise = Token("", "open", kind="noise")
    first = Step((Token("return", "new", 0.97, 0.2, "the model", (("pass", 0.02),)), noise, noise), 1.25)
    second = Step((sure, Token(" é\n", "refused", 0.01, 1.5, "masks"), Token(HOSTILE, "new", 0.4, 1.5), noise), 0.75)
    third = Step(
        (
            sure,
            Token(HOSTILE, "settled", 0.4, 1.5),
            Token("x", "locked"),
            Token("y", "changing", 0.6),
            Token("", "new", 0.9, 0.1, kind="end"),
        ),
        0.1,
    )
    facts = (("Ended by", "end"),)
    return GapTrace(3, f"def f():\n    # {HOSTILE}\n    ", "\n\nf()\n", (first, second, third), HOSTILE, facts=facts)
