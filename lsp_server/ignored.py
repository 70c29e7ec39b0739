"""Which files git ignores: those that `.gitignore` files and `.git/info/exclude` match and that it does not track.

Reads those files when asked, and the index for a file they match; what was read is kept until it changes on disk. Runs
no git, and patterns outside the repository are not read. Where the index cannot be read, the patterns decide.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lsp_server.git_index import GitIndexes

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

# Files with rules are short; this much is read of one that is not.
MOST_CHARS = 1_000_000
MOST_KEPT = 256

Stamp = tuple[int, int]


@dataclass(frozen=True, slots=True)
class _Repository:
    """A work tree, the file with its private rules and the one that says what is tracked."""

    root: Path
    exclude: Path
    index: Path


class IgnoreRules:
    """Answers for files of any repository."""

    def __init__(self) -> None:
        self._specs: dict[Path, tuple[Stamp, GitIgnoreSpec]] = {}
        self._indexes = GitIndexes()

    def is_ignored(self, path: Path) -> bool:
        """Whether git would ignore the file. False outside a repository, and where nothing can be read."""
        repository = _repository_of(path)
        if repository is None:
            return False
        parts = path.relative_to(repository.root).parts
        if parts[:1] == (".git",):
            return True
        # A file cannot be taken back out of a folder that is ignored, so folders are asked from the outside in.
        above = range(1, len(parts) + 1)
        return any(
            self._matches(repository, parts[:depth], depth < len(parts)) for depth in above
        ) and not self._indexes.tracks(repository.index, "/".join(parts))

    def _matches(self, repository: _Repository, parts: tuple[str, ...], is_folder: bool) -> bool:
        """What the rules nearest to a path say of it; those of its own folder come first."""
        for depth in range(len(parts) - 1, -1, -1):
            folder = repository.root.joinpath(*parts[:depth])
            verdict = self._verdict(folder / ".gitignore", parts[depth:], is_folder)
            if verdict is not None:
                return verdict
        return bool(self._verdict(repository.exclude, parts, is_folder))

    def _verdict(self, rules: Path, below: tuple[str, ...], is_folder: bool) -> bool | None:
        """What one file of rules says, None when no pattern matches."""
        spec = self._spec(rules)
        return spec.check_file("/".join(below) + "/" * is_folder).include if spec is not None else None

    def _spec(self, rules: Path) -> GitIgnoreSpec | None:
        try:
            found = rules.stat()
            stamp = (found.st_mtime_ns, found.st_size)
            kept = self._specs.get(rules)
            if kept is not None and kept[0] == stamp:
                return kept[1]
            with rules.open(encoding="utf-8", errors="replace") as file:
                lines = file.read(MOST_CHARS).split("\n")
        except (OSError, ValueError):
            self._specs.pop(rules, None)
            return None
        spec = _spec_of(lines)
        if len(self._specs) >= MOST_KEPT:
            self._specs.clear()
        self._specs[rules] = (stamp, spec)
        return spec


def _spec_of(lines: list[str]) -> GitIgnoreSpec:
    """The rules of a file; lines that are no patterns are left out, as git does."""
    from pathspec import GitIgnoreSpec

    try:
        return GitIgnoreSpec.from_lines(lines)
    except ValueError:
        return GitIgnoreSpec.from_lines([line for line in lines if _is_pattern(line)])


def _is_pattern(line: str) -> bool:
    from pathspec import GitIgnoreSpec

    try:
        GitIgnoreSpec.from_lines([line])
    except ValueError:
        return False
    return True


def _repository_of(path: Path) -> _Repository | None:
    """The innermost repository above a file."""
    for folder in path.parents:
        git = folder / ".git"
        try:
            if git.is_dir():
                return _Repository(folder, git / "info" / "exclude", git / "index")
            if git.is_file():
                own = _own_folder(git)
                return _Repository(folder, _shared_folder(own) / "info" / "exclude", own / "index")
        except (OSError, ValueError):
            return None
    return None


def _own_folder(link: Path) -> Path:
    """What a linked work tree or a submodule has for itself: `.git` is a file there that names that folder."""
    return link.parent / link.read_text(encoding="utf-8").removeprefix("gitdir:").strip()


def _shared_folder(own: Path) -> Path:
    """What a linked work tree shares with its repository; any other shares nothing."""
    shared = own / "commondir"
    return own / shared.read_text(encoding="utf-8").strip() if shared.is_file() else own
