"""What git ignores."""

from __future__ import annotations

from pathlib import Path

import pytest

from lsp_server.ignored import IgnoreRules
from tests.fakes.git import git


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    (tmp_path / ".git").mkdir()
    return tmp_path


RULES = {
    ".gitignore": "*.log\n!keep.log\n/build/\nlocal.*\n# comment\n\\#odd\ndocs/**/tmp\n[bad\n",
    "sub/.gitignore": "!local.py\n*.gen\n",
    "sub/deep/.gitignore": "!*.gen\nnew.py\n",
    "build/.gitignore": "!*\n",
    ".git/info/exclude": "private.py\nsub/hidden\n",
}
FILES = (
    *("a.py", "a.log", "keep.log", "sub/a.log", "sub/keep.log", "build/a.py", "sub/build/a.py", "local.py"),
    *("sub/local.py", "sub/local.txt", "sub/x.gen", "sub/deep/x.gen", "sub/deep/new.py", "new.py", "#odd"),
    *("docs/tmp/a", "docs/x/tmp/a", "docs/x/a", "private.py", "sub/private.py", "sub/hidden/a.py", "hidden/a.py"),
)


# What `git check-ignore --no-index --stdin` of git 2 printed for these files and rules.
IGNORED = {
    "private.py",
    "sub/local.txt",
    "docs/x/tmp/a",
    "sub/private.py",
    "sub/hidden/a.py",
    "a.log",
    "sub/deep/new.py",
    "build/a.py",
    "sub/a.log",
    "docs/tmp/a",
    "sub/x.gen",
    "#odd",
    "local.py",
}


def test_the_rules_are_git_s_own(repository: Path) -> None:
    for name, text in RULES.items():
        write(repository / name, text)
    rules = IgnoreRules()
    assert {name for name in FILES if rules.is_ignored(repository / name)} == IGNORED


def test_rules_that_change_count_at_once(repository: Path) -> None:
    rules = IgnoreRules()
    path = repository / "a.py"
    assert not rules.is_ignored(path)
    write(repository / ".gitignore", "a.py\n")
    assert rules.is_ignored(path)
    write(repository / ".gitignore", "b.py, longer\n")
    assert not rules.is_ignored(path)
    (repository / ".gitignore").unlink()
    assert not rules.is_ignored(path)


def test_without_a_repository_nothing_is_ignored(tmp_path: Path) -> None:
    write(tmp_path / ".gitignore", "*\n")
    assert not IgnoreRules().is_ignored(tmp_path / "a.py")
    assert not IgnoreRules().is_ignored(Path("/"))
    assert not IgnoreRules().is_ignored(Path("a\0b/c"))


def test_an_inner_repository_has_rules_of_its_own(repository: Path) -> None:
    write(repository / ".gitignore", "*.py\n")
    (repository / "inner/.git").mkdir(parents=True)
    rules = IgnoreRules()
    assert rules.is_ignored(repository / "a.py")
    assert not rules.is_ignored(repository / "inner/a.py")
    assert rules.is_ignored(repository / ".git/config")


def test_a_linked_work_tree_shares_its_repository_s_exclusions(tmp_path: Path) -> None:
    main, linked = tmp_path / "main", tmp_path / "linked"
    write(main / ".git/info/exclude", "private.py\n")
    write(main / ".git/worktrees/linked/commondir", "../..\n")
    write(linked / ".git", f"gitdir: {main}/.git/worktrees/linked\n")
    assert IgnoreRules().is_ignored(linked / "private.py")
    assert not IgnoreRules().is_ignored(linked / "a.py")


def track(root: Path, *names: str) -> None:
    """Have git track files that it ignores."""
    for name in names:
        write(root / name, "")
    git(root, "add", "--force", *names)


def test_a_tracked_file_is_not_ignored_whatever_matches_it(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    write(tmp_path / ".gitignore", "*.py\nbuild/\n")
    track(tmp_path, "a.py", "build/deep/b.txt")
    write(tmp_path / "c.py", "")
    rules = IgnoreRules()
    names = ("a.py", "build/deep/b.txt", "c.py", "build/c.txt", "build/deep/a.py")
    said = git(tmp_path, "check-ignore", "--stdin", text="\n".join(names)).split()
    assert [name for name in names if rules.is_ignored(tmp_path / name)] == said == list(names[2:])
    git(tmp_path, "rm", "--cached", "-q", "a.py")
    assert rules.is_ignored(tmp_path / "a.py")


def test_where_the_index_cannot_be_read_the_patterns_decide(repository: Path) -> None:
    write(repository / ".gitignore", "*.py\n")
    (repository / ".git/index").write_bytes(b"DIRC and no more")
    assert IgnoreRules().is_ignored(repository / "a.py")


def test_linked_work_trees_and_submodules_have_indexes_of_their_own(tmp_path: Path) -> None:
    main, linked, inner = tmp_path / "main", tmp_path / "linked", tmp_path / "main/inner"
    (main / ".git/modules").mkdir(parents=True)
    git(main, "init", "-q")
    git(main, "commit", "-q", "--allow-empty", "-m", "first")
    git(main, "worktree", "add", "-q", str(linked))
    git(main, "init", "-q", "--separate-git-dir", str(main / ".git/modules/inner"), str(inner))
    for root, name in ((main, "main.py"), (linked, "linked.py"), (inner, "inner.py")):
        write(root / ".gitignore", "*.py\n")
        track(root, name)
    rules = IgnoreRules()
    tracked = [(root, name) for root in (main, linked, inner) for name in ("main.py", "linked.py", "inner.py")]
    open_ = [(root, name) for root, name in tracked if not rules.is_ignored(root / name)]
    assert open_ == [(main, "main.py"), (linked, "linked.py"), (inner, "inner.py")]
