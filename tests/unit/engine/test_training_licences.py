"""Only what a package declares, and only what is permissive, lets its files in."""

from __future__ import annotations

import pytest

from engine.training.licences import (
    debian_copyright,
    declared_by_npm,
    declared_by_text,
    declared_by_wheel,
    is_permissive,
)
from tests.fakes.packages import COPYRIGHT


@pytest.mark.parametrize(
    "expression",
    [
        "MIT",
        "Apache-2.0",
        "Apache License, Version 2.0",
        "Apache Software License",
        "MIT/Apache-2.0",
        "(MIT OR Apache-2.0)",
        "The MIT License (MIT)",
        "BSD-3-Clause",
        "3-Clause BSD License",
        "BSD License AND Apache Software License",
        "Expat",
        "ISC License (ISCL)",
        "Python Software Foundation License",
        "PSF-2.0",
        "BSL-1.0",
        "Zlib",
        "Unlicense",
        "GPL-2+ or MIT",
        "Apache-2.0 WITH LLVM-exception",
        "(MIT OR Apache-2.0) AND BSD-3-Clause",
    ],
)
def test_permissive(expression: str) -> None:
    assert is_permissive(expression)


@pytest.mark.parametrize(
    "expression",
    [
        "",
        "   ",
        "GPL-2",
        "GPL-3.0-or-later",
        "LGPL-2.1+",
        "AGPL-3.0",
        "GNU General Public License v3 or later (GPLv3+)",
        "GNU Library or Lesser General Public License (LGPL)",
        "MPL-2.0",
        "MIT and GPL-2",
        "MIT, GPL-2",
        "(MIT AND (GPL-2 OR BSD))",
        "Apache-1.1",
        "UNLICENSED",
        "SEE LICENSE IN LICENSE.md",
        "CC-BY-NC-4.0",
        "proprietary",
        "other",
        "MIT and",
        "MIT+",
    ],
)
def test_not_permissive(expression: str) -> None:
    assert not is_permissive(expression)


def test_a_wheel_says_it_by_expression_classifier_field_or_text() -> None:
    mit = "License :: OSI Approved :: MIT License"
    assert declared_by_wheel("License-Expression: Apache-2.0\nClassifier: " + mit) == "Apache-2.0"
    assert declared_by_wheel("License: whatever\nClassifier: " + mit) == "MIT License"
    assert declared_by_wheel("License: BSD") == "BSD"
    assert declared_by_wheel("Name: demo") is None
    grant = "Permission is hereby granted, free of charge, to any person"
    assert declared_by_wheel("Name: demo", [grant]) == "MIT"
    assert declared_by_wheel("Name: demo", [grant, "GNU Lesser General Public License"]) is None


@pytest.mark.parametrize(
    ("package", "licence"),
    [
        ('{"license": "ISC"}', "ISC"),
        ('{"license": {"type": "MIT"}}', "MIT"),
        ('{"license": ""}', None),
        ('{"license": ["MIT"]}', None),
        ("{}", None),
        ("[]", None),
        ("not json", None),
    ],
)
def test_what_npm_packages_say(package: str, licence: str | None) -> None:
    assert declared_by_npm(package) == licence


def test_the_last_pattern_of_a_debian_copyright_counts() -> None:
    declared = debian_copyright(COPYRIGHT)
    assert declared is not None
    assert declared.licence_of("src/main.c") == "Expat"
    assert declared.licence_of("src/borrowed/old.c") == "GPL-2+"


def test_a_name_of_debians_own_is_read_by_its_text() -> None:
    text = (
        COPYRIGHT.replace("Expat", "Go") + "\nLicense: Go\n Redistribution and use in source and binary forms, with\n"
    )
    declared = debian_copyright(text)
    assert declared is not None
    assert declared.licence_of("src/main.c") == "BSD-3-Clause"
    unknown = debian_copyright(COPYRIGHT.replace("Expat", "Odd"))
    assert unknown is not None
    assert unknown.licence_of("src/main.c") == "Odd"


def test_prose_in_debian_copyright_tells_nothing() -> None:
    assert debian_copyright("This package is free software under the MIT licence.") is None
    assert debian_copyright("") is None


def test_texts_are_named_and_copyleft_is_not() -> None:
    assert declared_by_text("Apache License\n   Version 2.0, January 2004") == "Apache-2.0"
    assert declared_by_text("PYTHON SOFTWARE FOUNDATION LICENSE VERSION 2\n... GPL-compatible") == "PSF-2.0"
    assert declared_by_text("GNU GENERAL PUBLIC LICENSE") is None
    assert declared_by_text("All rights reserved.") is None
