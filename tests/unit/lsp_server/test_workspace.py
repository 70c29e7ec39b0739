"""Which folder a document belongs to, and whose settings it has."""

from __future__ import annotations

import pytest

from lsp_server.settings import Settings
from lsp_server.workspace import Workspace

FOLDERS = ("file:///w/app", "file:///w/app2/", "file:///w/app/inner", "file:///c%3A/Work", "vscode-remote://ssh/w/app")


@pytest.mark.parametrize(
    ("uri", "folder"),
    [
        ("file:///w/app/x.py", FOLDERS[0]),
        ("file:///w/app", FOLDERS[0]),
        ("file:///w/app2/x.py", FOLDERS[1]),
        ("file:///w/app/inner/deep/x.py", FOLDERS[2]),
        ("file:///w/app/innermost/x.py", FOLDERS[0]),
        ("file:///C:/Work/x.py", FOLDERS[3]),
        ("vscode-remote://ssh/w/app/x.py", FOLDERS[4]),
        ("vscode-remote://other/w/app/x.py", None),
        ("vscode-notebook-cell:/w/app/x.ipynb#W0", FOLDERS[0]),
        ("git:/w/app2/x.py?ref", FOLDERS[1]),
        ("file:///w/a%70p/x.py", FOLDERS[0]),
        ("untitled:Untitled-1", None),
        ("file:///", None),
        ("", None),
    ],
)
def test_a_document_belongs_to_the_innermost_folder_around_it(uri: str, folder: str | None) -> None:
    workspace = Workspace()
    workspace.begin(None, FOLDERS)
    assert workspace.folder_of(uri) == folder


def test_settings_are_laid_over_each_other() -> None:
    workspace = Workspace()
    workspace.begin({"drafts": True, "context": {"prefixChars": 1}}, FOLDERS[:2])
    workspace.configure({"context": {"suffixChars": 2}})
    workspace.configure_folder(FOLDERS[0], {"context": {"prefixChars": 3}})
    assert workspace.settings == Settings(drafts=True, prefix_chars=1, suffix_chars=2)
    assert workspace.settings_for("file:///w/app/x.py") == Settings(drafts=True, prefix_chars=3, suffix_chars=2)
    assert workspace.settings_for("file:///w/app2/x.py") == workspace.settings
    workspace.change_folders(removed=[FOLDERS[0]])
    workspace.change_folders(added=[FOLDERS[0]])
    assert workspace.settings_for("file:///w/app/x.py") == workspace.settings


def test_what_comes_for_a_folder_that_has_gone_is_dropped() -> None:
    workspace = Workspace()
    workspace.configure_folder(FOLDERS[0], {"enable": False})
    workspace.change_folders(added=[FOLDERS[0]], removed=["file:///never"])
    assert workspace.all_settings() == (Settings(),)


def test_a_fault_is_named_with_its_folder_and_once() -> None:
    workspace = Workspace()
    workspace.begin({"nonsense": 1}, FOLDERS[:2])
    workspace.configure_folder(FOLDERS[0], {"enable": 5})
    workspace.configure_folder(FOLDERS[1], {})
    assert [str(problem) for problem in workspace.problems] == [
        "nonsense: unknown setting",
        "enable in file:///w/app: must be true or false, not a number; using true",
    ]


@pytest.mark.parametrize("misfit", [5, "x", [1], True])
def test_what_is_no_object_is_reported_and_what_held_holds_on(misfit: object) -> None:
    workspace = Workspace()
    workspace.begin({"drafts": True}, FOLDERS[:1])
    workspace.configure({"enable": False})
    workspace.configure(misfit)
    workspace.configure_folder(FOLDERS[0], misfit)
    assert workspace.settings == Settings(drafts=True, enable=False)
    assert [problem.path for problem in workspace.problems] == ["lacuna"]
    workspace.configure({})
    assert [problem.path for problem in workspace.problems] == [f"lacuna in {FOLDERS[0]}"]
    workspace.configure_folder(FOLDERS[0], None)
    assert workspace.problems == ()
