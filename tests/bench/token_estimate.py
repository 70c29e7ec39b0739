"""How well the server's estimate of tokens fits the engine's tokenizer, per file ending.

python -m tests.bench.token_estimate --tokenizer tokenizer.json FOLDER [FOLDER …]

Prints, for pieces of 1500 characters, estimate / truth: the whole, and the lowest and highest twentieth.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator
from pathlib import Path

from engine.tokenizer import BpeTokenizer
from lsp_server.document import for_model
from lsp_server.tokens import estimated_tokens

ENDINGS = (
    *("py", "go", "rs", "java", "c", "cpp", "cs", "rb", "php", "sh"),
    *("html", "css", "json", "yaml", "toml", "lua", "md", "ts", "js"),
)
PIECE_CHARS = 1500
PIECES_PER_FILE = 8
FILES_PER_ENDING = 12


def pieces(folders: list[Path], ending: str, chance: random.Random) -> Iterator[str]:
    """Pieces of some files of an ending, drawn at random."""
    files = sorted(path for folder in folders for path in folder.rglob(f"*.{ending}") if path.is_file())
    for path in chance.sample(files, min(FILES_PER_ENDING, len(files))):
        text = for_model(path.read_text(encoding="utf-8", errors="replace"))
        for start in range(0, min(len(text) - PIECE_CHARS, PIECE_CHARS * PIECES_PER_FILE), PIECE_CHARS):
            yield text[start : start + PIECE_CHARS]


def main() -> None:
    """Read the command line and measure."""
    parser = argparse.ArgumentParser(prog="token_estimate", description=__doc__)
    parser.add_argument("--tokenizer", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("folders", type=Path, nargs="+")
    options = parser.parse_args()
    tokenizer = BpeTokenizer.load(options.tokenizer)
    chance = random.Random(options.seed)
    print("ending  pieces  chars/token  estimate/truth   p5    p95")
    for ending in ENDINGS:
        measured = [
            (len(piece), len(tokenizer.encode(piece)), estimated_tokens(piece))
            for piece in pieces(options.folders, ending, chance)
        ]
        if measured:
            chars, truth, estimate = (sum(column) for column in zip(*measured, strict=True))
            ratios = sorted(each[2] / each[1] for each in measured)
            low, high = ratios[len(ratios) // 20], ratios[-1 - len(ratios) // 20]
            share = estimate / truth
            print(f"{ending:6}  {len(measured):6}  {chars / truth:11.2f}  {share:14.2f}  {low:.2f}  {high:.2f}")


if __name__ == "__main__":
    main()
