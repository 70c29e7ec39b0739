"""Runs a program that a model wrote: isolated interpreter, empty folder, limits on time and memory, no network.

A guard for measuring, not a security boundary against a determined program: use it on machines you can lose.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

# Runs before the program: sockets, other processes and files outside the working folder are refused.
_GUARD = """
import resource, sys, os
resource.setrlimit(resource.RLIMIT_CPU, ({cpu}, {cpu}))
resource.setrlimit(resource.RLIMIT_AS, ({memory}, {memory}))
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
_here = os.path.realpath(os.getcwd())
def _guard(event, args):
    if event.startswith(("socket.", "subprocess.", "os.system", "os.exec", "os.posix_spawn", "os.fork", "ctypes.")):
        raise PermissionError(event)
    if event == "open" and isinstance(args[0], str) and args[1] and set(args[1]) & set("wax+"):
        if not os.path.realpath(args[0]).startswith(_here):
            raise PermissionError(args[0])
    if event in ("os.remove", "os.rename", "os.rmdir", "shutil.rmtree", "os.mkdir"):
        raise PermissionError(event)
sys.addaudithook(_guard)
import runpy
runpy.run_path("program.py", run_name="__main__")
"""


def passes(program: str, *, seconds: int = 10, memory_mib: int = 1024) -> bool:
    """Whether `program` runs to its end without an error inside the limits."""
    with tempfile.TemporaryDirectory(prefix="lacuna-bench-") as folder:
        Path(folder, "program.py").write_text(program, encoding="utf-8")
        guard = _GUARD.format(cpu=seconds, memory=memory_mib << 20)
        command = [*_no_network(), sys.executable, "-I", "-c", guard]
        environment = {"PATH": os.defpath, "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}
        try:
            done = subprocess.run(
                command,
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=seconds * 2,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return False
        return done.returncode == 0


def _no_network() -> list[str]:
    """A prefix that takes the network away where the system allows it; the guard refuses sockets in any case."""
    unshare = shutil.which("unshare")
    if unshare is None:
        return []
    probe = subprocess.run([unshare, "-rn", "true"], capture_output=True, check=False)
    return [unshare, "-rn"] if probe.returncode == 0 else []
