"""A worker of the benches that answers with what it was asked, prints in between, and ends when asked for "end"."""

from __future__ import annotations

from tests.bench.beside.pipe import Answer, serve


def _answer(question: Answer) -> Answer:
    print("a library's noise")
    if question.get("op") == "end":
        raise SystemExit(3)
    return {"asked": question}


if __name__ == "__main__":
    serve(_answer)
