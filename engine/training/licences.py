"""Which licences the corpus accepts, and what a package says of its own: `is_permissive` and the `declared_*` readers.

Pure: text in, licence names out. Must not fetch or open packages. A declaration nobody can read is no permission.
"""

from __future__ import annotations

import fnmatch
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from email.message import Message
from email.parser import HeaderParser

_FAMILIES = {
    "mit": "0 cmu expat x11 style",
    "expat": "mit",
    "apache": "2 0 software with llvm exception exceptions",
    "bsd": "0 2 3 clause new modified simplified revised style like google views",
    "0bsd": "",
    "psf": "2 0",
    "python": "software foundation psf 2 0",
    "isc": "iscl",
    "zlib": "libpng",
    "bsl": "1 0",
    "boost": "1 0 software",
    "unlicense": "",
    "x11": "",
    "curl": "",
    "hpnd": "",
    "ncsa": "",
    "cc0": "1 0 universal",
    "public": "domain",
}
"""The word that names a permissive licence, and the words that may stand with it: "BSD-3-clause", "Apache 2.0"."""
_NOISE = frozenset(("the", "license", "licence", "version", "v"))
_TEXTS = {
    "MIT": re.compile(r"permission is hereby granted, free of charge", re.IGNORECASE),
    "Apache-2.0": re.compile(r"apache license\s+version 2\.0", re.IGNORECASE),
    "BSD-3-Clause": re.compile(r"redistribution and use in source and binary forms", re.IGNORECASE),
}
_PYTHON = re.compile(r"python software foundation license version 2", re.IGNORECASE)
_COPYLEFT = re.compile(r"general public licen[cs]e|\b[AL]?GPL", re.IGNORECASE)
_CLASSIFIER = "License :: OSI Approved :: "
_LONGEST_NAME = 120


def is_permissive(expression: str) -> bool:
    """Whether one alternative of the licence expression is permissive in all its parts (SPDX or Debian's wording).

    An expression with brackets that mixes "and" with "or" is taken at its strictest: every name in it must be.
    """
    names = re.split(r"\b(?:and|or)\b|[|/,&]", re.sub(r"[()]", " ", expression), flags=re.IGNORECASE)
    if "(" in expression and len(re.findall(r"\band\b|\bor\b", expression.lower())) > 1:
        return all(_is_permissive_name(name) for name in names)
    alternatives = re.split(r"\bor\b|[|/]", expression, flags=re.IGNORECASE)
    return any(_all_permissive(alternative) for alternative in alternatives)


def declared_by_wheel(metadata: str, texts: Sequence[str] = ()) -> str | None:
    """The licence in a wheel's METADATA (core metadata 2.4: expression, then classifiers, then the free field);
    `texts` are its licence files, read when it only points to them."""
    headers = HeaderParser().parsestr(metadata)
    if expression := headers.get("License-Expression"):
        return str(expression)
    classifiers = [value for value in headers.get_all("Classifier", []) if value.startswith(_CLASSIFIER)]
    if classifiers:
        return " AND ".join(value.removeprefix(_CLASSIFIER) for value in classifiers)
    name = (headers.get("License") or "").strip()
    if 0 < len(name) <= _LONGEST_NAME and "\n" not in name:
        return name
    return _named_by_text([name, *texts])


def declared_by_npm(package: str) -> str | None:
    """The `license` of a package.json; None for anything else."""
    try:
        declared = json.loads(package).get("license")
    except (ValueError, AttributeError):
        return None
    if isinstance(declared, Mapping):
        declared = declared.get("type")
    return declared if isinstance(declared, str) and declared else None


def declared_by_text(text: str) -> str | None:
    """The licence whose text this is; None for a text that also is, or names, a copyleft one."""
    return _named_by_text([text])


@dataclass(frozen=True, slots=True)
class DebianCopyright:
    """A machine-readable debian/copyright (DEP-5): patterns with their licences, the last that matches counts.

    Names of Debian's own, such as "Go", are replaced by what the text given for them is.
    """

    patterns: tuple[tuple[str, str], ...]

    def licence_of(self, path: str) -> str | None:
        for pattern, licence in reversed(self.patterns):
            if fnmatch.fnmatchcase(path, pattern.removeprefix("./")):
                return licence
        return None

    def strictest(self) -> str:
        """For files whose place in the sources is not known: a licence that is not permissive, or all there are."""
        names = dict.fromkeys(licence for pattern, licence in self.patterns if not pattern.startswith("debian/"))
        return next((name for name in names if not is_permissive(name)), " and ".join(names))


def debian_copyright(text: str) -> DebianCopyright | None:
    """Read a debian/copyright; None when it is prose, which tells nobody which file has which licence."""
    if not re.search(r"^Format(?:-Specification)?:", text, re.MULTILINE):
        return None
    stanzas = [HeaderParser().parsestr(stanza.strip() + "\n") for stanza in re.split(r"\n[ \t]*\n", text)]
    texts = {name: body for stanza in stanzas for name, body in [_licence_field(stanza)] if body}
    patterns = []
    for stanza in stanzas:
        name, _ = _licence_field(stanza)
        known = name if is_permissive(name) else _named_by_text([texts.get(name, "")]) or name
        patterns += [(pattern, known) for pattern in (stanza.get("Files") or "").replace(",", " ").split() if name]
    return DebianCopyright(tuple(patterns)) if patterns else None


def declared_in_debian(text: str) -> str | None:
    """All licences of a debian/copyright together; None when it is prose."""
    declared = debian_copyright(text)
    return declared.strictest() if declared else None


def _licence_field(stanza: Message) -> tuple[str, str]:
    """The licence's name and, where the stanza gives it, its text."""
    name, _, body = (stanza.get("License") or "").strip().partition("\n")
    return name.strip(), body


def _all_permissive(alternative: str) -> bool:
    one_name = re.sub(r",\s*(?=version|v?\d)", " ", alternative, flags=re.IGNORECASE)
    parts = re.split(r"\band\b|[,&]", one_name, flags=re.IGNORECASE)
    return all(_is_permissive_name(part) for part in parts)


def _is_permissive_name(name: str) -> bool:
    # A plus sign means "or a later version", which only copyleft licences say of themselves.
    words = set(re.findall(r"[a-z0-9+]+", re.sub(r"\bv(?=\d)", "", name.lower()))) - _NOISE
    return any(family in words and words <= {family, *others.split()} for family, others in _FAMILIES.items())


def _named_by_text(texts: Sequence[str]) -> str | None:
    whole = "\n".join(texts)
    # Python's licence tells its history, which names the GPL as something it is compatible with.
    if _PYTHON.search(whole):
        return "PSF-2.0"
    if _COPYLEFT.search(whole):
        return None
    return next((name for name, mark in _TEXTS.items() if mark.search(whole)), None)
