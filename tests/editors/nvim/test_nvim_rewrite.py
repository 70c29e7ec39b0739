"""Inline rewrite in a real Neovim: select, say what, watch the drafts, judge the diff."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.fakes.neovim import Neovim

Write = Callable[..., Path]
Start = Callable[..., Neovim]

BEFORE = ("def f(a):", "    b = a + 1", "    c = b", "    d = c", "    return d")
AFTER = ("def f(a):", "    total = a + 1", "    c = b", "    d = c", "    return total")
TEXT = "\n".join(AFTER)
REWRITE = {"kind": "rewrite", "text": TEXT}


def rewriting(start: Start, write: Write, *replies: dict[str, Any], text: str = "", words: str = "Rename") -> Neovim:
    """An editor in which a rewrite of five lines has been asked for with real keys."""
    editor = start({"replies": list(replies or (REWRITE,))})
    editor.open(write(text or "\n".join(BEFORE) + "\n"))
    editor.keys("ggVG<M-r>")
    editor.wait_shown("Rewrite:")
    editor.keys(f"{words}<CR>")
    return editor


def test_the_selection_turns_from_noise_to_text_and_then_a_diff_is_shown(start: Start, write: Write) -> None:
    drafts = [
        ["def f(a):\n    xx = yy", len("def f(a):")],
        ["def f(a):\n    total = a + 1\n    zz", len("def f(a):\n    total")],
    ]
    editor = rewriting(start, write, REWRITE | {"drafts": drafts, "hold_drafts": True})
    editor.wait_shown("rewriting")
    dimmed = editor.attribute("c = b")
    editor.server_notify("test/step")
    editor.wait_shown("    xx = yy")
    # What the draft does not reach yet is not the old text any more.
    assert "return d" not in editor.shot()
    assert editor.attribute("xx = yy") == dimmed
    assert editor.attribute("def f(a)") != dimmed
    # The server sends 20 drafts a second at most and drops the others.
    time.sleep(0.2)
    editor.server_notify("test/step")
    editor.wait_shown("    total = a + 1")
    assert editor.attribute("total") != dimmed
    assert editor.attribute("= a + 1") == dimmed
    assert editor.lines() == list(BEFORE)
    editor.server_notify("test/step")
    editor.wait_shown("2 changes")
    shown = editor.screen()
    assert [row for row in shown if "total" in row] == ["    total = a + 1", "    return total"]
    assert "    b = a + 1" in shown
    assert "    return d" in shown
    assert editor.attribute("total = a") != editor.attribute("c = b")
    assert editor.lines() == list(BEFORE)


def test_all_is_accepted_and_one_undo_returns_the_text(start: Start, write: Write) -> None:
    editor = rewriting(start, write)
    editor.wait_shown("2 changes")
    editor.keys("gla")
    editor.wait_lines(*AFTER)
    editor.wait_gone("changes")
    assert len([row for row in editor.screen() if "total" in row]) == 2
    editor.keys("u")
    editor.wait_lines(*BEFORE)


def test_one_change_is_rejected_and_the_other_accepted(start: Start, write: Write) -> None:
    editor = rewriting(start, write)
    editor.wait_shown("2 changes")
    editor.keys("ggglx")
    editor.wait_shown("1 change ")
    assert editor.lines() == list(BEFORE)
    editor.keys("gln")
    editor.wait(lambda: editor.cursor()[0] == 5)
    editor.keys("glh")
    editor.wait_lines(*BEFORE[:4], AFTER[4])
    editor.wait_gone("1 change")
    assert "total = a" not in editor.shot()
    editor.keys("u")
    editor.wait_lines(*BEFORE)


def test_changes_accepted_one_by_one_are_one_undo(start: Start, write: Write) -> None:
    editor = rewriting(start, write)
    editor.wait_shown("2 changes")
    editor.keys("ggglh")
    editor.wait_lines(BEFORE[0], AFTER[1], *BEFORE[2:])
    editor.keys("glh")
    editor.wait_lines(*AFTER)
    editor.keys("u")
    editor.wait_lines(*BEFORE)


def test_another_seed_then_a_further_instruction(start: Start, write: Write) -> None:
    second = {"kind": "rewrite", "about": "and document", "text": TEXT.replace("total", "documented")}
    editor = rewriting(start, write, second, REWRITE)
    editor.wait_shown("2 changes")
    editor.keys("gls")
    editor.wait(lambda: len(editor.server_request("test/engine")["requests"]) == 2)
    editor.wait_shown("2 changes")
    editor.keys("gli")
    editor.wait_shown("Refine:")
    editor.keys("and document<CR>")
    editor.wait_shown("documented = a + 1")
    first, other, refined = editor.server_request("test/engine")["requests"]
    assert first["selection"] == other["selection"] == refined["selection"]
    assert not first["seed"]
    assert other["seed"]
    assert "Rename" in refined["instruction"]
    assert "and document" in refined["instruction"]
    editor.keys("gla")
    editor.wait_lines(*(line.replace("total", "documented") for line in AFTER))


def test_cancel_leaves_nothing_behind(start: Start, write: Write) -> None:
    editor = rewriting(start, write, REWRITE | {"drafts": [["noise", 2]], "hold_drafts": True})
    plain = editor.wait(lambda: editor.screen() if "rewriting" in editor.shot() else None)
    assert plain
    editor.server_notify("test/step")
    editor.wait_shown("noise")
    editor.keys("glc")
    editor.wait_gone("noise")
    editor.wait(lambda: editor.server_request("test/engine")["cancelled"])
    assert editor.screen()[:5] == list(BEFORE)
    assert "rewriting" not in editor.shot()
    assert editor.attribute("return d") == editor.attribute("def f(a)")
    marks = "local n = 0 for _, ns in pairs(vim.api.nvim_get_namespaces()) do " \
            "n = n + #vim.api.nvim_buf_get_extmarks(0, ns, 0, -1, {}) end return n"  # fmt: skip
    assert editor.lua(marks) == 0
    assert editor.lua("return require('lacuna.requests').count()") == 0
    editor.keys("glc")
    editor.wait(lambda: any("nothing runs" in text for text in editor.told()))


def test_a_diff_is_taken_away_by_the_same_key(start: Start, write: Write) -> None:
    editor = rewriting(start, write)
    editor.wait_shown("2 changes")
    editor.keys("glc")
    editor.wait_gone("changes")
    assert editor.screen()[:6] == [*BEFORE, "~"]


def test_edits_elsewhere_move_what_is_rewritten(start: Start, write: Write) -> None:
    editor = rewriting(start, write, REWRITE | {"hold": True}, text="# top\n" + "\n".join(BEFORE) + "\n# end\n")
    editor.keys("u")
    editor.keys("glc")
    editor.wait_gone("rewriting")
    editor.keys("2GV6G<M-r>")
    editor.wait_shown("Rewrite:")
    editor.keys("Rename<CR>")
    editor.wait_shown("rewriting")
    editor.keys("ggOone<CR>two<Esc>Gothree<Esc>")
    editor.wait(lambda: editor.lines()[0] == "one" and editor.lines()[-1] == "three")
    editor.server_notify("test/release")
    editor.wait_shown("2 changes")
    editor.keys("ggOzero<Esc>")
    editor.keys("gla")
    editor.wait_lines("zero", "one", "two", "# top", *AFTER, "# end", "three")


def test_several_run_at_once_each_in_its_place(start: Start, write: Write) -> None:
    replies = [
        {"kind": "rewrite", "about": "first", "text": "a = 'one'", "hold": True},
        {"kind": "rewrite", "about": "second", "text": "b = 'two'\nb += 1", "hold": True},
    ]
    editor = start({"replies": replies})
    editor.open(write("a = 1\n\nb = 2\n"))
    for line, words in ((1, "first"), (3, "second")):
        editor.keys(f"{line}G<M-r>")
        editor.wait_shown("Rewrite:")
        editor.keys(f"{words}<CR>")
        editor.wait_gone("Rewrite:")
    editor.wait(lambda: len([row for row in editor.screen() if "rewriting" in row]) == 2)
    editor.server_notify("test/release")
    editor.wait(lambda: len([row for row in editor.screen() if "1 change" in row]) == 2)
    editor.keys("Ggla")
    editor.wait_lines("a = 1", "", "b = 'two'", "b += 1")
    editor.keys("gggla")
    editor.wait_lines("a = 'one'", "", "b = 'two'", "b += 1")


def test_a_selection_that_is_edited_meanwhile_is_not_overwritten(start: Start, write: Write) -> None:
    editor = rewriting(start, write, REWRITE | {"hold": True})
    editor.wait_shown("rewriting")
    editor.keys("2GA  # mine<Esc>")
    editor.server_notify("test/release")
    editor.wait_gone("rewriting")
    editor.wait(lambda: any("meanwhile" in text for text in editor.told()))
    assert editor.lines()[1] == "    b = a + 1  # mine"
    assert len([text for text in editor.told() if "meanwhile" in text]) == 1


def test_a_change_whose_text_was_edited_is_left_out(start: Start, write: Write) -> None:
    editor = rewriting(start, write)
    editor.wait_shown("2 changes")
    editor.keys("5G0Cpass<Esc>")
    editor.keys("gla")
    editor.wait_lines(BEFORE[0], AFTER[1], *BEFORE[2:4], "pass")
    editor.wait(lambda: any("left out" in text for text in editor.told()))


def test_part_of_a_line_is_rewritten_in_a_crlf_file_behind_an_emoji(start: Start, write: Write) -> None:
    path = write("s = '😀' + value + 1\r\nt = 2\r\n")
    editor = start({"replies": [{"kind": "rewrite", "text": "other"}]})
    editor.open(path)
    editor.keys("fvve<M-r>")
    editor.wait_shown("Rewrite:")
    editor.keys("Rename<CR>")
    editor.wait_shown("s = '😀' + other + 1")
    assert editor.lines()[0] == "s = '😀' + value + 1"
    editor.keys("gla:w<CR>")
    editor.wait(lambda: path.read_bytes() == "s = '😀' + other + 1\r\nt = 2\r\n".encode())


def test_a_failure_of_the_engine_is_told_once_and_leaves_nothing_dimmed(start: Start, write: Write) -> None:
    fault = {"kind": "rewrite", "error": ["out_of_memory", "there is no memory left", "close something"]}
    editor = rewriting(start, write, fault)
    editor.wait(lambda: any("there is no memory left" in text for text in editor.told()))
    editor.wait_gone("rewriting")
    assert editor.lines() == list(BEFORE)
    (told,) = editor.told()
    assert "Close something" in told


def test_a_server_that_dies_leaves_nothing_dimmed_and_can_be_started_anew(start: Start, write: Write) -> None:
    editor = rewriting(start, write, REWRITE | {"hold": True})
    editor.wait_shown("rewriting")
    editor.lua("vim.lsp.get_clients()[1].rpc.terminate()")
    editor.wait_gone("rewriting")
    editor.wait(lambda: any(":Lacuna restart" in text for text in editor.told()))
    editor.command("Lacuna restart")
    editor.wait_ready()
    editor.keys("ggVG<M-r>")
    editor.wait_shown("Rewrite:")


def test_nothing_said_is_nothing_asked(start: Start, write: Write) -> None:
    editor = rewriting(start, write, words="<Esc>")
    editor.settle()
    assert editor.server_request("test/engine")["requests"] == []
    assert "rewriting" not in editor.shot()
