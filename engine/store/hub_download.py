"""Run as a script in a child process: bring one file of a hub repository into a folder, resuming what is there.

Arguments: REPOSITORY FILE REVISION FOLDER. It imports nothing of this project, so that it also runs from a source tree.
huggingface_hub's `hf_hub_download` begins again in every process (since 2.x); its `http_get` resumes, and is used here.
"""

from __future__ import annotations

import sys
from pathlib import Path


def main(argv: list[str]) -> None:
    """Download to FOLDER/FILE, which appears when it is whole; the unfinished file is named after its ETag."""
    from huggingface_hub import get_hf_file_metadata, get_token, hf_hub_url
    from huggingface_hub.file_download import http_get

    repository, name, revision, folder = argv
    url, token = hf_hub_url(repository, name, revision=revision), get_token()
    headers = {"authorization": f"Bearer {token}"} if token else {}
    found = get_hf_file_metadata(url, headers=headers)
    unfinished = _unfinished(Path(folder), name, found.etag or "")
    with unfinished.open("ab") as stream:
        http_get(url, stream, resume_size=stream.tell(), headers=headers, expected_size=found.size)
    unfinished.replace(Path(folder) / name)


def _unfinished(folder: Path, name: str, etag: str) -> Path:
    """Where the bytes of this version of the file gather; those of another version are dropped."""
    version = "".join(letter for letter in etag if letter.isalnum())[:16]
    mine = folder / f"{name}.{version}.unfinished"
    for other in folder.glob(f"{name}.*.unfinished"):
        if other != mine:
            other.unlink()
    return mine


if __name__ == "__main__":
    main(sys.argv[1:])
