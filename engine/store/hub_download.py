"""Run as a script in a child process: bring one file of a hub repository into a folder, resuming what is there.

Arguments: REPOSITORY FILE REVISION FOLDER. It imports nothing of this project, so that it also runs from a source tree.
"""

from __future__ import annotations

import sys


def main(argv: list[str]) -> None:
    """Download; huggingface_hub keeps an unfinished file inside FOLDER and goes on from it the next time."""
    from huggingface_hub import hf_hub_download

    repository, name, revision, folder = argv
    hf_hub_download(repository, name, revision=revision, local_dir=folder)


if __name__ == "__main__":
    main(sys.argv[1:])
