"""What git ignores."""

from __future__ import annotations

from pathlib import Path

import pytest

from lsp_server.ignored import IgnoreRules


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
