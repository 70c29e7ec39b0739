"""Which documents nobody can type into, as far as a server can know: it is not told.

Virtual documents are known by their URI's scheme; a file on disk by its permissions. A scheme that is not listed,
and a file that does not exist yet, may be written.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from pygls.uris import to_fs_path

from lsp_server.uris import parts_of

# Old versions of files, contents of archives, generated and captured text, in VS Code, JetBrains, Neovim and others.
READ_ONLY_SCHEMES = frozenset(
    (
        "class",
        "csharp",
        "debug",
        "fugitive",
        "git",
        "gitlens",
        "jar",
        "jdt",
        "jrt",
        "man",
        "output",
        "pr",
        "review",
        "walkthroughsnippet",
        "zipfile",
    )
)


def is_read_only(uri: str) -> bool:
    """Whether `uri` names text that its editor will not let anybody change."""
    scheme = parts_of(uri).scheme
    return scheme in READ_ONLY_SCHEMES or (scheme == "file" and _is_protected(to_fs_path(uri)))


def _is_protected(path: str | None) -> bool:
    """Whether nobody, or not this user, may write the file. A superuser may write all that anybody may."""
    try:
        mode = Path(path or "").stat().st_mode
    except (OSError, ValueError):
        return False
    writable = mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH)
    return stat.S_ISREG(mode) and not (writable and os.access(path or "", os.W_OK))
