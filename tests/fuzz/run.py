"""Coverage-guided fuzzing by hand: `python -m tests.fuzz.run TARGET [libFuzzer's options]`, as in

    python -m tests.fuzz.run gguf -runs=1000000

Needs `pip install -e '.[fuzz]'` (atheris, a libFuzzer for Python). What breaks a promise is written to `crash-...` in
the working folder; giving that file's name as an option runs it again. Ends with libFuzzer's status.
"""

from __future__ import annotations

import logging
import sys
import tempfile
from pathlib import Path

import atheris

# What is imported inside is what coverage is taken of; the libraries beside it would only slow it down.
INSTRUMENTED = ["engine.protocol", "engine.models", "lsp_server"]

with atheris.instrument_imports(include=INSTRUMENTED):
    from tests.fuzz.targets import targets


def main(arguments: list[str]) -> None:
    logging.disable()
    found = targets()
    if not arguments or arguments[0] not in found:
        raise SystemExit(f"say what to fuzz: {', '.join(found)}")
    name, *options = arguments
    with tempfile.TemporaryDirectory(prefix="seeds-") as folder:
        for number, seed in enumerate(found[name].seeds):
            Path(folder, f"seed-{number}").write_bytes(seed)
        if all(option.startswith("-") for option in options):
            options = [*options, folder]
        atheris.Setup([sys.argv[0], *options], found[name].run)
        atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1:])
