"""Builds the corpus: packages in, files with a manifest out. `build_corpus`, `CorpusBuilder`.

Owns CORPUS/files and the order of the filters: language, content, benchmark, copies, share of a project. A package
that gives nothing is reported and left out; it never stops the others. Must not cut holes or know token ids.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Protocol

from engine.training.contamination import Benchmark
from engine.training.extraction import PackageError, SourceFile, read_package
from engine.training.fetching import STANDARD_LIBRARY, FetchError, Source
from engine.training.manifest import (
    FILES,
    HELD_OUT,
    TRAIN,
    FileRecord,
    Manifest,
    PackageRecord,
    held_out_projects,
)
from engine.training.source_filter import language_of_content, language_of_path, refusal

MOST_FILES = 500
"""Of one project in one language, so that no large project is the corpus."""


class PackageFetcher(Protocol):
    """Brings the archives of a package, or raises FetchError."""

    def fetch(self, source: Source) -> tuple[Path, ...]: ...


@dataclass(frozen=True, slots=True)
class _Candidate:
    record: FileRecord
    data: bytes


class CorpusBuilder:
    """Collects files of one package after another; `manifest` sums up."""

    def __init__(self, corpus: Path, benchmark: Benchmark, excluded: str = "") -> None:
        self._corpus = corpus
        self._benchmark = benchmark
        self._excluded = excluded
        self._digests: set[str] = set()
        self._files: list[FileRecord] = []
        self._packages: list[PackageRecord] = []
        self._left_out: dict[str, str] = {}
        self._dropped: Counter[str] = Counter()

    def add(self, source: Source, archives: Sequence[Path]) -> int:
        """Take in one package; the number of files kept. Raises PackageError when it gives none."""
        candidates = [found for file in read_package(source, archives) if (found := self._judge(source, file))]
        chosen = self._within_share(candidates)
        if not chosen:
            raise PackageError("no file of it passed the filters")
        for candidate in chosen:
            target = self._corpus / FILES / candidate.record.stored
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(candidate.data)
        records = [candidate.record for candidate in chosen]
        self._files += records
        licences = ", ".join(sorted({record.licence for record in records}))
        self._packages.append(PackageRecord(source.project, source.registry, _digests(archives, records), licences))
        return len(records)

    def leave_out(self, source: Source, reason: str) -> None:
        """Note why a package is not in the corpus."""
        # A manifest names packages and never an address, not even one in a licence field.
        self._left_out[f"{source.registry}:{source.package}"] = re.sub(r"\w+://\S+", "an address", reason)

    def manifest(self) -> Manifest:
        """Everything taken in so far, split by project."""
        counts: dict[str, Counter[str]] = {}
        for record in self._files:
            counts.setdefault(record.language, Counter())[record.project] += 1
        held = held_out_projects(counts)
        files = (replace(record, split=HELD_OUT if record.project in held else TRAIN) for record in self._files)
        dropped = dict(sorted(self._dropped.items()))
        return Manifest(tuple(self._packages), tuple(files), dict(self._left_out), dropped, self._excluded)

    def _judge(self, source: Source, file: SourceFile) -> _Candidate | None:
        """The file as a candidate, or None with the reason counted."""
        named = language_of_path(file.path)
        reason = refusal(file.data) if named else "no source"
        if named is None or reason is not None:
            self._dropped[reason or "no source"] += 1
            return None
        text = file.data.decode("utf-8")
        language = language_of_content(named, text)
        digest = hashlib.sha256(file.data).hexdigest()
        if language not in source.languages:
            reason = "another language"
        elif digest in self._digests:
            reason = "copy"
        else:
            reason = self._benchmark.found_in(text)
        if reason is not None:
            self._dropped[reason] += 1
            return None
        self._digests.add(digest)
        stored = f"{language}/{digest[:20]}{PurePosixPath(file.path).suffix}"
        record = FileRecord(stored, source.project, file.path, language, file.licence, digest, TRAIN)
        return _Candidate(record, file.data)

    def _within_share(self, candidates: Sequence[_Candidate]) -> list[_Candidate]:
        """At most `MOST_FILES` in each language, chosen by digest: any, and the same each time."""
        taken: Counter[str] = Counter()
        chosen = []
        for candidate in sorted(candidates, key=lambda candidate: candidate.record.sha256):
            taken[candidate.record.language] += 1
            if taken[candidate.record.language] <= MOST_FILES:
                chosen.append(candidate)
            else:
                self._dropped["share of its project"] += 1
        return chosen


def build_corpus(
    sources: Sequence[Source],
    builder: CorpusBuilder,
    fetcher: PackageFetcher,
    report: Callable[[str], None],
) -> Manifest:
    """Fetch and take in every source, telling `report` a line about each. Raises ValueError when none gave a file."""
    for number, source in enumerate(sources, start=1):
        place = f"[{number}/{len(sources)}] {source.registry} {source.package}"
        try:
            count = builder.add(source, fetcher.fetch(source))
        except (FetchError, PackageError) as fault:
            builder.leave_out(source, str(fault))
            report(f"{place}: left out, {fault}")
        else:
            report(f"{place}: {count} files")
    manifest = builder.manifest()
    if not manifest.files:
        raise ValueError("no package gave a file: see the reasons above, and try again when the registries are reached")
    return manifest


def _digests(archives: Sequence[Path], records: Sequence[FileRecord]) -> dict[str, str]:
    """sha256 of every archive; a folder's is that of its kept files' digests in order."""
    kept = "\n".join(sorted(record.sha256 for record in records)).encode()
    return {
        STANDARD_LIBRARY if archive.is_dir() else archive.name: hashlib.sha256(
            kept if archive.is_dir() else archive.read_bytes()
        ).hexdigest()
        for archive in archives
    }
