"""`lacuna doctor`: each fault is found, named and given a remedy, and decides the exit status."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner, Result

import engine.cli.doctor as doctor_module
from engine.cli.checkup import Check, Engine, Folder, Machine, Model, Package, Verdict, examine
from engine.cli.doctor import cpu_flags, look_at_engine, look_at_model, observe
from engine.cli.main import cli
from engine.models.folder_record import converted_folder, write_record
from engine.probe import Found, probe
from engine.protocol.address import Endpoint, engine_address, make_private, write_endpoint
from engine.runtime.extension import INTERFACE, MODULE
from tests.fakes.model_sources import CONTENT, NAME, GoodSource, small_store

MODEL = Model("small", Path("/home/models/small.gguf"), 500_000_000, "ready", converted="whole")
LOCKED = Folder("cache folder", Path("/x"), False)
BLOCKED = Folder("cache folder", Path("/x/cache"), False, obstacle=Path("/x"))
UNSAFE = Engine(Path(), "unsafe", "open to others", "remove it")
MUTE = Engine(Path("/s"), "mute", pid=4711)
TORCH = Package("torch", "torch<2.14,>=2.9", "2.13.0+cpu", True)
HEALTHY = Machine(
    python=(3, 12, 1),
    executable="/venv/bin/python",
    installed=True,
    packages=(TORCH, Package("click", "click>=8.1", "8.2", True)),
    system="linux",
    architecture="x86_64",
    kernel="avx2",
    cpu_flags=frozenset({"avx", "avx2"}),
    cores=4,
    memory_free=8_000_000_000,
    disk_free=50_000_000_000,
    folders=(Folder("models folder", Path("/home/models"), True),),
    model=MODEL,
    engine=Engine(Path("/run/engine.sock"), "none"),
    log=Path("/home/state/engine.log"),
    log_exists=True,
)


def doctor(machine: Machine, *options: str) -> Result:
    return CliRunner().invoke(cli, ["doctor", *options], obj=lambda: machine)


def finding(machine: Machine, subject: str) -> Check:
    return next(check for check in examine(machine) if check.subject == subject)


def test_a_healthy_machine_has_no_fault() -> None:
    result = doctor(HEALTHY)
    assert result.exit_code == 0
    assert "Lacuna can work here" in result.stdout
    assert {check.verdict for check in examine(HEALTHY)} == {"ok"}


@pytest.mark.parametrize(
    ("machine", "subject", "verdict", "says"),
    [
        (replace(HEALTHY, python=(3, 10, 9)), "python", "fault", "Python 3.11"),
        (replace(HEALTHY, installed=False), "packages", "warning", "pip install ."),
        (replace(HEALTHY, packages=(TORCH, Package("a", "a>=2", "1", False))), "packages", "fault", "a>=2: 1"),
        (replace(HEALTHY, packages=(TORCH, Package("a", "a", None, False))), "packages", "fault", "not installed"),
        (replace(HEALTHY, packages=()), "torch", "fault", "not installed"),
        (replace(HEALTHY, packages=(replace(TORCH, installed=None, fits=False),)), "torch", "fault", "pip install"),
        (replace(HEALTHY, packages=(replace(TORCH, installed="2.5.0", fits=False),)), "torch", "fault", "2.5.0 is"),
        (replace(HEALTHY, cores=1), "cores", "warning", "slow"),
        (replace(HEALTHY, cpu_flags=frozenset({"sse"})), "cores", "warning", "AVX2"),
        (replace(HEALTHY, cpu_flags=frozenset()), "cores", "ok", "4 usable"),
        (HEALTHY, "kernel", "ok", "avx2"),
        (replace(HEALTHY, kernel=None), "kernel", "warning", "Install a C++ compiler (g++ or clang++)"),
        (replace(HEALTHY, kernel=None, system="darwin", cpu_flags=frozenset()), "kernel", "warning", "C++ compiler"),
        (replace(HEALTHY, kernel=None, system="win32"), "kernel", "ok", "torch's kernels"),
        (replace(HEALTHY, kernel=None, architecture="arm64"), "kernel", "ok", "torch's kernels"),
        (replace(HEALTHY, kernel=None, cpu_flags=frozenset({"sse"})), "kernel", "ok", "without AVX2"),
        (replace(HEALTHY, memory_free=1_000_000_000), "memory", "warning", "Close other programs"),
        (replace(HEALTHY, memory_free=100_000_000), "memory", "fault", "Close other programs"),
        (
            replace(HEALTHY, folders=(LOCKED,)),
            "cache folder",
            "fault",
            "LACUNA_HOME",
        ),
        (replace(HEALTHY, model=replace(MODEL, state="absent")), "model", "fault", "lacuna models pull small"),
        (replace(HEALTHY, model=replace(MODEL, state="damaged")), "model", "fault", "wrong digest"),
        (replace(HEALTHY, model=replace(MODEL, state="unreadable")), "model", "fault", "readable"),
        (replace(HEALTHY, model=replace(MODEL, converted="none")), "converted", "ok", "first start"),
        (replace(HEALTHY, model=replace(MODEL, converted="changed")), "converted", "warning", "about a minute"),
        (replace(HEALTHY, folders=(BLOCKED,)), "cache folder", "fault", "/x is not a folder"),
        (replace(HEALTHY, model=replace(MODEL, state="absent"), disk_free=900_000_000), "disk", "fault", "Free 1.0 GB"),
        (replace(HEALTHY, engine=Engine(Path("/s"), "left_over")), "engine", "ok", "left over"),
        (replace(HEALTHY, engine=Engine(Path("/s"), "answers")), "engine", "ok", "lacuna engine status"),
        (replace(HEALTHY, engine=MUTE), "engine", "warning", "runs (process 4711) at /s but does not answer"),
        (replace(HEALTHY, engine=MUTE), "engine", "warning", "`lacuna engine stop`"),
        (replace(HEALTHY, engine=replace(MUTE, pid=None)), "engine", "fault", "does not answer"),
        (
            replace(HEALTHY, engine=UNSAFE),
            "engine",
            "fault",
            "remove it",
        ),
        (replace(HEALTHY, log_exists=False), "log", "ok", "nothing written"),
    ],
)
def test_what_facts_mean(machine: Machine, subject: str, verdict: Verdict, says: str) -> None:
    check = finding(machine, subject)
    assert check.verdict == verdict
    assert says in f"{check.finding} {check.remedy}"
    assert bool(check.remedy) == (verdict != "ok")
    assert doctor(machine).exit_code == (1 if verdict == "fault" else 0)


def test_memory_an_engine_holds_already_is_not_missed() -> None:
    for engine in (Engine(Path("/s"), "answers"), MUTE):
        machine = replace(HEALTHY, memory_free=100_000_000, engine=engine)
        assert finding(machine, "memory").verdict == "ok"


def test_json_holds_every_finding() -> None:
    result = doctor(replace(HEALTHY, cores=1, python=(3, 9, 0)), "--json")
    report = json.loads(result.stdout)
    assert (result.exit_code, report["ok"]) == (1, False)
    verdicts = {check["subject"]: check["verdict"] for check in report["checks"]}
    assert (verdicts["python"], verdicts["cores"], verdicts["disk"]) == ("fault", "warning", "ok")


def test_brackets_in_a_path_are_printed_as_they_are() -> None:
    assert "/home/[bold]/log" in doctor(replace(HEALTHY, log=Path("/home/[bold]/log"))).stdout


def test_the_model_is_judged_and_never_removed(tmp_path: Path) -> None:
    store = small_store(tmp_path, [GoodSource()])
    assert look_at_model(store).state == "absent"
    file = store.pull(NAME)
    assert (look_at_model(store).state, look_at_model(store).converted) == ("ready", "none")
    file.write_bytes(b"x" * len(CONTENT))
    assert (look_at_model(store).state, file.exists()) == ("damaged", True)


def test_a_conversion_is_called_whole_only_if_its_files_are(tmp_path: Path) -> None:
    store = small_store(tmp_path, [GoodSource()])
    folder = converted_folder(store.converted_dir(NAME), NAME)
    folder.mkdir(parents=True)
    assert look_at_model(store).converted == "changed"
    (folder / "layer").write_bytes(b"weights")
    write_record(folder, {})
    assert look_at_model(store).converted == "whole"
    (folder / "layer").write_bytes(b"weight")
    assert look_at_model(store).converted == "changed"


@pytest.mark.parametrize("name", ["h", "home" * 30], ids=["short", "too-long-for-a-socket"])
def test_a_home_that_is_a_file_is_a_fault_with_a_remedy(tmp_path: Path, name: str) -> None:
    home = tmp_path / name
    home.write_text("a file")
    machine = observe({"LACUNA_HOME": str(home)})
    faults = {check.subject: check for check in examine(machine) if check.verdict == "fault"}
    assert {"models folder", "cache folder", "log folder", "engine"} <= faults.keys()
    assert f"{home} is not a folder" in faults["models folder"].finding
    assert all("LACUNA_HOME" in faults[name].remedy for name in ("models folder", "engine"))


def test_a_file_where_the_socket_should_be_is_a_fault(tmp_path: Path) -> None:
    environ = {"LACUNA_HOME": str(tmp_path)}
    address = engine_address(NAME, environ)
    make_private(address)
    address.path.write_text("something else")
    engine = look_at_engine(NAME, environ)
    assert engine.state == "unsafe"
    assert finding(replace(HEALTHY, engine=engine), "engine").verdict == "fault"


def test_no_folder_means_no_engine(tmp_path: Path) -> None:
    assert look_at_engine(NAME, {"LACUNA_HOME": str(tmp_path)}).state == "none"


def test_an_engine_is_told_from_a_mute_one_and_a_dead_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    environ = {"LACUNA_HOME": str(tmp_path)}
    address = engine_address(NAME, environ, "tcp")
    environ_address = engine_address(NAME, environ)
    make_private(environ_address)
    if environ_address.transport == "tcp":
        write_endpoint(address.path, Endpoint(1, 9, "token"))
        assert look_at_engine(NAME, environ).state == "left_over"
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as door:
        door.bind(str(environ_address.path))
        door.listen()
        monkeypatch.setattr(doctor_module, "probe", lambda address: probe(address, limit_s=0.05))
        assert look_at_engine(NAME, environ).state == "mute"
        monkeypatch.setattr(doctor_module, "probe", lambda _: Found("answers", 1))
        assert look_at_engine(NAME, environ).state == "answers"
        monkeypatch.undo()
    assert look_at_engine(NAME, environ).state == "left_over"


def test_a_folder_open_to_others_is_a_fault(tmp_path: Path) -> None:
    environ = {"LACUNA_HOME": str(tmp_path)}
    address = engine_address(NAME, environ)
    make_private(address)
    address.directory.chmod(0o755)
    engine = look_at_engine(NAME, environ)
    assert engine.state == "unsafe"
    assert "open to others" in engine.fault


def test_a_name_that_cannot_be_an_address_is_a_fault() -> None:
    assert look_at_engine("../x", {}).state == "unsafe"


def test_this_machine_can_be_looked_at(tmp_path: Path) -> None:
    machine = observe({"LACUNA_HOME": str(tmp_path / "new")})
    assert machine.model.state == "absent"
    assert all(folder.writable for folder in machine.folders)
    assert machine.cores >= 1
    assert not (tmp_path / "new").exists()


def test_cpu_flags_are_read_where_the_system_lists_them(tmp_path: Path) -> None:
    (tmp_path / "cpuinfo").write_text("processor\t: 0\nflags\t\t: sse avx2\nprocessor\t: 1\nflags\t\t: sse avx2\n")
    assert cpu_flags(tmp_path / "cpuinfo") == {"sse", "avx2"}
    assert cpu_flags(tmp_path / "nothing") == frozenset()


@pytest.mark.parametrize(("interface", "kernel"), [(INTERFACE, "avx512"), (INTERFACE + 1, None)])
def test_the_kernel_in_use_is_the_fastest_of_this_version(
    interface: int, kernel: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = SimpleNamespace(INTERFACE=interface, kernels=lambda: ("avx512", "avx2"))
    monkeypatch.setitem(sys.modules, MODULE, built)
    assert observe({"LACUNA_HOME": str(tmp_path)}).kernel == kernel


def test_a_kernel_that_was_not_built_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, MODULE, None)
    assert observe({"LACUNA_HOME": str(tmp_path)}).kernel is None


def test_the_kernel_is_looked_up_without_torch() -> None:
    code = "import sys, engine.cli.doctor as d; d.kernel_names(); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
