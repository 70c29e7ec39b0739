"""Instructions in comments: found in any language's syntax, about the right code, and gone from it."""

from __future__ import annotations

import pytest

from lsp_server.commented_code import instructed
from lsp_server.instruction_comments import comments_near
from lsp_server.passage import Passage


def asked(marked: str, language: str = "python") -> tuple[str, Passage] | None:
    """The text and what is asked with the cursor at `‸` or the selection `⟦…⟧`."""
    text = marked.replace("‸", "").replace("⟦", "").replace("⟧", "")
    start, end = marked.find("⟦"), marked.find("⟧") - 1
    if "‸" in marked:
        start = end = marked.index("‸")
    found = instructed(text, start, end, language)
    if found is None:
        return None
    # A ticket names the place alone: what is asked there must be the same.
    assert instructed(text, found.start, found.end, language) == found
    return text, found.passage


def about(marked: str, language: str = "python") -> tuple[str, str, str]:
    """(instruction, the text it is about as it stands, that text without the comment)."""
    found = asked(marked, language)
    assert found is not None
    text, passage = found
    return passage.instruction, text[passage.start : passage.end], passage.text


@pytest.mark.parametrize(
    ("language", "comment"),
    [
        ("python", "# lacuna: be brief"),
        ("python", "#lacuna:be brief"),
        ("python", "## LACUNA : be brief"),
        ("javascript", "// lacuna: be brief"),
        ("javascript", "/* lacuna: be brief */"),
        ("typescript", "/** lacuna: be\n * brief */"),
        ("c", "/*\n * lacuna: be\n * brief\n */"),
        ("rust", "/// lacuna: be brief"),
        ("css", "/* lacuna: be brief */"),
        ("html", "<!-- lacuna: be brief -->"),
        ("html", "<!--\n  lacuna: be\n  brief\n-->"),
        ("lua", "-- lacuna: be brief"),
        ("lua", "--[[ lacuna: be brief ]]"),
        ("sql", "-- lacuna: be brief"),
        ("haskell", "{- lacuna: be brief -}"),
        ("ocaml", "(* lacuna: be brief *)"),
        ("clojure", ";; lacuna: be brief"),
        ("latex", "% lacuna: be brief"),
        ("ruby", "=begin\nlacuna: be brief\n=end"),
        ("shellscript", "# lacuna: be brief"),
        ("yaml", "# lacuna: be brief"),
        ("bat", "REM lacuna: be brief"),
        ("bat", "@rem lacuna: be brief"),
        ("bat", ":: lacuna: be brief"),
        ("fortran", "! lacuna: be brief"),
        ("FortranFreeForm", "!lacuna: be brief"),
        ("pascal", "{ lacuna: be brief }"),
        ("pascal", "// lacuna: be brief"),
        ("pascal", "(* lacuna: be\n brief *)"),
        ("cobol", "*> lacuna: be brief"),
        ("jinja", "{# lacuna: be brief #}"),
        ("jinja-html", "{#- lacuna: be brief -#}"),
        ("twig", "<!-- lacuna: be brief -->"),
        # No comment syntax is known for these.
        ("no-such-language", "{# lacuna: be brief #}"),
        ("markdown", "<!-- lacuna: be brief -->"),
        ("plaintext", "# lacuna: be brief"),
        ("no-such-language", "// lacuna: be brief"),
        ("no-such-language", "/* lacuna: be brief */"),
    ],
)
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_an_instruction_is_found_in_any_comment(language: str, comment: str, newline: str) -> None:
    below = "one line\ntwo lines"
    text = f"first\n\n{comment}‸\n{below}\n\nlast\n"
    instruction, old, new = about(text.replace("\n", newline), language)
    assert instruction == "be brief"
    assert new == below.replace("\n", newline)
    assert old.endswith(new)


@pytest.mark.parametrize(
    "text",
    [
        "x = 1  # no instruction‸\n",
        "# lacuna:‸\nx = 1\n",
        "# about lacuna: nothing‸\nx = 1\n",
        "s = '# lacuna: go'‸\n",
        "lacuna: go‸\n",
        "# lacuna: go\nx = 1‸\n",
    ],
)
def test_what_is_no_instruction_is_left_alone(text: str) -> None:
    assert asked(text) is None


def test_what_closes_other_comments_is_text_in_a_line_comment() -> None:
    for language, comment, wanted in (
        ("javascript", "// lacuna: use {} and */", "use {} and */"),
        ("javascript", "/** lacuna: halve -- **/", "halve --"),
        ("python", "# lacuna: add #}", "add #}"),
        ("pascal", "{ lacuna: add (* }", "add (*"),
    ):
        (found,) = comments_near(f"{comment}\nx\n", 0, 0, language)
        assert found.instruction == wanted


def test_a_word_that_ends_like_a_comment_sign_opens_none() -> None:
    assert comments_near("set theorem lacuna: x\n", 0, 0, "bat") == []
    assert comments_near('set x="REM lacuna: x"\n', 0, 0, "bat") == []


def test_a_comment_without_code_is_no_instruction_far_away() -> None:
    text = "# lacuna: go\n" + "x = 1\n" * 2_000
    assert comments_near(text, len(text), len(text), "python") == []
    assert len(comments_near(text, 0, 0, "python")) == 1


@pytest.mark.parametrize(
    ("marked", "block"),
    [
        # A statement, and what is indented below it.
        ("# lacuna: i‸\ndef f():\n    a\n\n    b\n\n\nc\n", "def f():\n    a\n\n    b"),
        ("# lacuna: i‸\ndef f():\n    a\ndef g():\n    b\n", "def f():\n    a"),
        ("# lacuna: i‸\n@one\n@two\nclass A:\n    x = 1\ny = 2\n", "@one\n@two\nclass A:\n    x = 1"),
        # What goes on or closes at the same depth belongs to it.
        ("# lacuna: i‸\nif a:\n    b\nelse:\n    c\nd\n", "if a:\n    b\nelse:\n    c"),
        ("# lacuna: i‸\nx = [\n    1,\n]\ny = 2\n", "x = [\n    1,\n]"),
        # A paragraph of statements.
        ("# lacuna: i‸\na = 1\nb = 2\n\nc = 3\n", "a = 1\nb = 2"),
        # It ends with the block it is in.
        ("def f():\n    # lacuna: i‸\n    a = 1\n    b = 2\nc = 3\n", "    a = 1\n    b = 2"),
        # Several instructions are one.
        ("# lacuna: i\n# lacuna: i‸\na = 1\n", "a = 1"),
    ],
)
def test_an_instruction_is_about_the_block_below(marked: str, block: str) -> None:
    _, old, new = about(marked)
    assert new == block
    assert old.endswith(block)


def test_several_instructions_in_a_row_are_one_wherever_the_cursor_is() -> None:
    wanted = ("Be brief. Use a set.", "# lacuna: Be brief\n# lacuna: Use a set.\nx = 1", "x = 1")
    assert about("# lacuna: Be brief‸\n# lacuna: Use a set.\nx = 1\n") == wanted
    assert about("# lacuna: Be brief\n# lacuna: Use‸ a set.\nx = 1\n") == wanted


def test_an_instruction_behind_code_is_about_that_line() -> None:
    assert about("a = 1\nx = f(y)  # lacuna: use g‸\nb = 2\n") == (
        "use g",
        "x = f(y)  # lacuna: use g",
        "x = f(y)",
    )
    assert about("f(/* lacuna: use b ‸*/ a);\ng();\n", "c") == ("use b", "f(/* lacuna: use b */ a);", "f(a);")
    assert about("def f():  # lacuna: i‸\n    a\n\n    b\nc\n")[2] == "def f():\n    a\n\n    b"


def test_a_selection_is_what_the_instruction_is_about() -> None:
    assert about("a\n⟦b = 1\n# lacuna: i\nc = 2\n⟧d\n") == ("i", "b = 1\n# lacuna: i\nc = 2\n", "b = 1\nc = 2\n")
    assert about("⟦b = 1\n# lacuna: i⟧") == ("i", "b = 1\n# lacuna: i", "b = 1")
    assert about("⟦b = 1\r\n# lacuna: i⟧\r\n") == ("i", "b = 1\r\n# lacuna: i", "b = 1")
    # A selection of the comment alone is a cursor in it.
    assert about("⟦# lacuna: i⟧\nb = 1\n\nc\n") == ("i", "# lacuna: i\nb = 1", "b = 1")
    assert about("⟦# lacuna: i\n⟧b = 1\n") == ("i", "# lacuna: i\nb = 1", "b = 1")


def test_an_instruction_with_no_code_asks_for_some() -> None:
    found = asked("def f():\n    # lacuna: return one‸\n\nx = 1\n")
    assert found is not None
    text, passage = found
    assert text[passage.start : passage.end] == "# lacuna: return one"
    assert (passage.text, passage.instruction, passage.hint) == ("", "", "# return one\n    ")
    found = asked("# lacuna: imports‸")
    assert found is not None
    assert found[1].hint == "# imports\n"


def test_an_instruction_further_in_is_for_another_time() -> None:
    inner = "def f():\n    # lacuna: j\n    a\n"
    assert about(f"# lacuna: i‸\n{inner}") == ("i", f"# lacuna: i\n{inner}"[:-1], inner[:-1])
    assert about(f"# lacuna: i\n{inner}".replace("j", "j‸"))[2] == "    a"


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_an_instruction_far_down_in_a_large_file_is_found(newline: str) -> None:
    text = ("def f():\n    return 'it'\n" * 2_000 + "# lacuna: i‸\nx = 1\n").replace("\n", newline)
    assert about(text) == ("i", f"# lacuna: i{newline}x = 1", "x = 1")
    assert asked(("x = 1\n" * 9_000 + 's = """\n# lacuna: i‸\n"""\n').replace("\n", newline)) is None


def test_an_instruction_on_the_line_behind_a_selection_is_not_meant() -> None:
    assert asked("⟦a = 1\n⟧# lacuna: i\nb = 1\n") is None
    assert asked("⟦a = 1\n#⟧ lacuna: i\nb = 1\n") is not None
