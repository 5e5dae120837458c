"""Differences that are planted: of two runs, `ptkit.diff` names the line where the program parts first.

Load addresses of all files and the position of the stack differ between the runs.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from compiling import PROGRAMS, compiled, compiled_by
from interpreters import interpreter
from rounds import needs_emulator

import ptkit

pytestmark = needs_emulator
FOLDER = PROGRAMS / "planted"
LOADER = "/lib64/ld-linux-x86-64.so.2"
MOST_RUNS = 60


@dataclass
class Way:
    """What decides how a run goes.

    Attributes
    ----------
    value : str
        Of the variable INPUT.
    text : bytes
        Standard input.
    is_open : bool
        More of it may come.
    file : bool
        The file input.txt is there.
    environment : dict of str to str
    words : tuple of str
        Further arguments.
    """

    value: str = ""
    text: bytes = b""
    is_open: bool = False
    file: bool = False
    environment: dict[str, str] = field(default_factory=dict)
    words: tuple[str, ...] = ()


def ways(a: str, b: str) -> tuple[Way, Way]:
    return Way(a), Way(b)


C = {
    "input_byte": (Way(text=b"axbc"), Way(text=b"aybc")),
    "allocation": ways("1000000000000000000", "0000000000000001024"),
    "signalled": ways("0", "1"),
    "fault": ways("3", "1"),
    "environment": ways("fast", "slow"),
    "missing_file": (Way(file=True), Way()),
    "short_read": (Way(text=bytes(64)), Way(text=bytes(60))),
    "interrupted": (Way(text=b"x"), Way(is_open=True)),
    "locale": (Way(environment={"LC_ALL": "C.UTF-8"}), Way(environment={"LC_ALL": "POSIX"})),
    "timeout": (Way(text=b"x"), Way(is_open=True)),
    "overflow": ways("3", "9"),
    "jump_out": ways("7", "8"),
    "options": (Way(words=("-a",)), Way(words=("-b",))),
    "loop": ways("7", "9"),
    "recursion": ways("4", "5"),
    "jump_table": ways("2", "4"),
    "pointer": ways("0", "1"),
    "floating": ways("0.25", "0.75"),
    "limit": ways("03", "20"),
    "early_return": ways("01", "-1"),
}
CPP = {"virtual_call": ways("0", "1"), "exception": ways("4", "9"), "cast": ways("0", "1")}
RUST = {"none": ways("2", "7"), "bounds": ways("2", "7")}
FLAKY = {"race": "RACE:", "seed": "SEED:", "unset": "UNSET:"}


@contextmanager
def standard_input(way: Way) -> Iterator[None]:
    """The standard input of programs that are started meanwhile."""
    read, write = os.pipe()
    saved = os.dup(0)
    os.dup2(read, 0)
    os.close(read)
    os.write(write, way.text)
    if not way.is_open:
        os.close(write)
    try:
        yield
    finally:
        os.dup2(saved, 0)
        os.close(saved)
        if way.is_open:
            os.close(write)


class Recorders:
    """Recordings in a folder, each at other addresses.

    The dynamic linker, run as a program, maps the program behind the stack: the stack's size moves all files.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._pages = random.Random(7)
        self._number = 0

    def record(self, program: Path, kind: str, way: Way) -> tuple[ptkit.Trace, int]:
        """Record a run; returns its exit status, too."""
        self._number += 1
        run = self._folder / f"run-{self._number}"
        run.mkdir()
        if way.file:
            (run / "input.txt").write_text("x")
        with pytest.MonkeyPatch.context() as patch, standard_input(way):
            for name in ("LC_ALL", "LANG", "LC_CTYPE"):
                patch.delenv(name, raising=False)
            patch.setenv("QEMU_STACK_SIZE", str(0x800000 + 0x1000 * self._pages.randrange(1 << 12)))
            # Of one length, so that the program finds its variables by equal branches.
            patch.setenv("INPUT", way.value)
            for name, value in way.environment.items():
                patch.setenv(name, value)
            patch.setenv("RUST_BACKTRACE", "0")
            patch.chdir(run)
            command = [LOADER, str(program), kind, *way.words]
            recorder = ptkit.Recorder(command, run / "out.ptk", backend="emulator", quiet=True)
            path = recorder.run()
        return ptkit.open(path), recorder.recording.exit_status


@pytest.fixture(scope="module")
def recorders(tmp_path_factory: pytest.TempPathFactory) -> Recorders:
    return Recorders(tmp_path_factory.mktemp("planted"))


@pytest.fixture(scope="module")
def c_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("c")
    return compiled(folder / "planted_c", "-O1", "-g", "-Wl,--build-id", FOLDER / "planted.c")


@pytest.fixture(scope="module")
def cpp_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cpp")
    return compiled(folder / "planted_cpp", "-O1", "-g", "-Wl,--build-id", FOLDER / "planted.cpp")


@pytest.fixture(scope="module")
def rust_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rust")
    return compiled_by("rustc", "planted.rs", folder, "-g", "-C", "opt-level=1")


@pytest.fixture(scope="module")
def flaky_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("flaky")
    source = PROGRAMS / "branches" / "flaky.c"
    return compiled(folder / "flaky", "-O1", "-g", "-pthread", "-Wl,--build-id", source)


@pytest.fixture(scope="module")
def python_program() -> Path:
    found = interpreter("3.12")
    if found is None:
        pytest.skip("python3.12 is not installed")
    return found


def line(source: Path, text: str) -> int:
    """Number of the one line that ends with a text, or has it and a reason behind it."""
    lines = source.read_text().splitlines()
    [number] = [
        number
        for number, one in enumerate(lines, 1)
        if one.endswith(text) or (text[-1] == ":" and text in one)
    ]
    return number


def main_of(trace: ptkit.Trace, program: Path) -> int:
    """Address of the first function of the program that has a name."""
    name = "main" if program.suffix != ".rs" else "planted::main"
    return min(ip for found, ip, _ in trace.symbols(name) if found == name)


def parts_at(a: ptkit.Trace, b: ptkit.Trace, program: Path, source: Path, mark: str) -> None:
    assert main_of(a, program) != main_of(b, program)
    found = ptkit.diff(a, b)
    assert found.equal is False
    first: Any = found.first()
    assert first is not None
    expected = f"{source.name}:{line(source, mark)}"
    row = first.row
    # What a library parts at first was called from the line.
    shown = f"{Path(row['source']).name}:{row['line']}" if row["is_own"] else row["own"].rpartition(" ")[2]
    assert shown == expected, str(first)
    assert (row["a_way"], row["a_target"]) != (row["b_way"], row["b_target"])


@pytest.mark.parametrize("kind", C)
def test_c_parts_at_the_planted_line(recorders: Recorders, c_program: Path, kind: str) -> None:
    a, b = (recorders.record(c_program, kind, way)[0] for way in C[kind])
    parts_at(a, b, c_program, FOLDER / "planted.c", f"PARTS {kind}")


@pytest.mark.parametrize("kind", CPP)
def test_cpp_parts_at_the_planted_line(recorders: Recorders, cpp_program: Path, kind: str) -> None:
    a, b = (recorders.record(cpp_program, kind, way)[0] for way in CPP[kind])
    parts_at(a, b, cpp_program, FOLDER / "planted.cpp", f"PARTS {kind}")


@pytest.mark.parametrize("kind", RUST)
def test_rust_parts_at_the_planted_line(recorders: Recorders, rust_program: Path, kind: str) -> None:
    a, b = (recorders.record(rust_program, kind, way)[0] for way in RUST[kind])
    parts_at(a, b, rust_program, FOLDER / "planted.rs", f"PARTS {kind}")


def test_python_parts_in_the_planted_function(
    recorders: Recorders, python_program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The interpreter takes other paths with other addresses: the calls of Python functions compare."""
    monkeypatch.setenv("PYTHONHASHSEED", "0")
    words = ("perf", "-S", "-s", "-B", str(FOLDER / "planted.py"))
    a, b = (recorders.record(python_program, "-X", Way(value, words=words))[0] for value in ("6", "7"))
    first: Any = ptkit.diff(a, b, frames="python").first()
    assert first is not None
    row = first.row
    assert [row[name].partition(" ")[0] for name in ("a_target", "b_target")] == ["even", "odd"]
    for stack in (first.a_stack, first.b_stack):
        assert any(str(frame.function).startswith("decide ") for frame in stack), str(first)


@pytest.mark.parametrize("kind", FLAKY)
def test_flaky_run_parts_at_the_planted_line(recorders: Recorders, flaky_program: Path, kind: str) -> None:
    """The race, the seed of a hash and the byte that was not written are decided by the run itself."""
    by_status: dict[int, ptkit.Trace] = {}
    for _ in range(MOST_RUNS):
        trace, status = recorders.record(flaky_program, kind, Way())
        by_status[status] = trace
        if len(by_status) > 1:
            break
    assert by_status.keys() == {0, 1}
    parts_at(by_status[0], by_status[1], flaky_program, PROGRAMS / "branches" / "flaky.c", FLAKY[kind])


@pytest.mark.parametrize("kind", ["input_byte", "jump_out", "recursion"])
def test_equal_runs_are_said_to_be_equal(recorders: Recorders, c_program: Path, kind: str) -> None:
    way = C[kind][0]
    a, b = (recorders.record(c_program, kind, way)[0] for _ in range(2))
    assert main_of(a, c_program) != main_of(b, c_program)
    found = ptkit.diff(a, b, own=True)  # strcmp() of the C library differs by alignment
    assert found.equal is True, str(found)
    assert found.first() is None


def test_equal_runs_of_rust_part_in_no_file_of_their_own(recorders: Recorders, rust_program: Path) -> None:
    a, b = (recorders.record(rust_program, "none", RUST["none"][0])[0] for _ in range(2))
    found = ptkit.diff(a, b, module="planted")
    assert found.first() is None, str(found)
