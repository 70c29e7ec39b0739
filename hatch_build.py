"""Builds the optional C++ kernel `engine.runtime._int8` where a compiler is at hand; without one nothing is missing.

The module lands beside its Python callers in the source tree, also for a wheel, so that a checkout runs with it. It
keeps to Python's limited API: one build serves every Python from 3.11 on. `LACUNA_KERNEL=require` makes a build that
fails an error, `LACUNA_KERNEL=skip` builds none. Of its own accord: `python hatch_build.py`, with hatchling and
setuptools installed.
"""

from __future__ import annotations

import os
import platform
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

MODULE = "engine.runtime._int8"
PLACE = Path("engine/runtime")
SOURCES = PLACE / "kernel"
X86_64 = ("x86_64", "amd64")


class KernelHook(BuildHookInterface):  # type: ignore[type-arg]
    """Compiles before a wheel is put together; what came of it travels in the wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002
        if self.target_name != "wheel":
            return
        built = build(Path(self.root))
        if built is not None:
            build_data["artifacts"].append(built.relative_to(self.root).as_posix())
            build_data["pure_python"] = False
            build_data["tag"] = _tag()


def build(root: Path) -> Path | None:
    """The module built below `root`, or None where there is no compiler, or none for this machine.

    Raises what the compiler's driver raises if LACUNA_KERNEL=require.
    """
    wish = os.environ.get("LACUNA_KERNEL", "")
    for stale in (root / PLACE).glob("_int8*.so"):
        stale.unlink()
    if wish == "skip":
        return None
    try:
        return _compiled(root)
    except Exception as fault:
        if wish == "require":
            raise
        sys.stderr.write(f"lacuna: built without its own int8 kernel ({fault}); torch's kernels serve instead\n")
        return None


def _compiled(root: Path) -> Path:
    if platform.machine().lower() not in X86_64 or sys.platform == "win32":
        raise RuntimeError(f"it has no code for {sys.platform} on {platform.machine()}")
    from setuptools import Distribution, Extension
    from setuptools.command.build_ext import build_ext

    extension = Extension(
        MODULE,
        sources=[str(path.relative_to(root)) for path in sorted((root / SOURCES).glob("*.cpp"))],
        depends=[str(path.relative_to(root)) for path in sorted((root / SOURCES).glob("*.h"))],
        language="c++",
        # Products and sums stay as written, so that every kernel gives the same bits.
        extra_compile_args=["-std=c++17", "-O3", "-ffp-contract=off", "-fvisibility=hidden", "-pthread", "-g0"],
        extra_link_args=["-pthread"],
        define_macros=[("Py_LIMITED_API", "0x030B0000")],
        py_limited_api=True,
    )
    command = build_ext(Distribution({"name": "lacuna", "ext_modules": [extension]}))
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as scratch:
        command.build_temp, command.build_lib = scratch, str(root)
        os.chdir(root)
        try:
            command.ensure_finalized()
            command.run()
            return root / command.get_ext_fullpath(MODULE)
        finally:
            os.chdir(before)


def _tag() -> str:
    from packaging.tags import sys_tags

    platform_tag = next(tag.platform for tag in sys_tags() if "manylinux" not in tag.platform)
    return f"cp311-abi3-{platform_tag}"


if __name__ == "__main__":
    sys.stdout.write(f"{build(Path(__file__).resolve().parent)}\n")
