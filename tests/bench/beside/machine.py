"""What a result was measured on: processor, memory, versions, commit."""

from __future__ import annotations

import os
import platform
import subprocess
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

INSTRUCTION_SETS = ("avx2", "avx_vnni", "avx512f", "avx512_vnni", "amx_int8")
PACKAGES = ("torch", "transformers", "xllamacpp")


def machine_facts() -> dict[str, object]:
    """Everything a reader needs to judge a time: no name of the machine, no path."""
    processor = _cpuinfo()
    flags = processor.get("flags", "").split()
    return {
        "processor": processor.get("model name", platform.processor() or platform.machine()),
        "family": f"{processor.get('cpu family', '?')}/{processor.get('model', '?')}",
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "instructions": [name for name in INSTRUCTION_SETS if name in flags],
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in PACKAGES},
        "commit": commit(),
        "date": time.strftime("%Y-%m-%d"),
    }


def commit() -> str:
    """The commit of the working tree, marked when something in it is not committed; empty outside of a repository."""
    folder = Path(__file__).resolve().parent
    described = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--exclude=*"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    return described.stdout.strip()


def _cpuinfo() -> dict[str, str]:
    """The first processor's entry, where the system has such a file."""
    file = Path("/proc/cpuinfo")
    if not file.exists():
        return {}
    first = file.read_text(encoding="utf-8").split("\n\n")[0]
    pairs = (line.partition(":") for line in first.split("\n"))
    return {name.strip(): value.strip() for name, _, value in pairs}


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
