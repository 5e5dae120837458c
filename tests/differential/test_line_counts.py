"""Counts of source lines against `gcov`, and calls of functions against callgrind's counts."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from compiling import PROGRAMS, compiled

import ptkit
from ptkit import capture

pytestmark = pytest.mark.skipif(
    not any(one.name == "emulator" and one.available for one in capture.probe()),
    reason="no emulator here: " + "; ".join(f"{one.name}: {one.detail}" for one in capture.probe()),
)
SOURCE = PROGRAMS / "names" / "source_lines.c"


def tool(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found


def of_gcov(source: Path, folder: Path) -> dict[int, int]:
    """Executions of each line of a program, as gcov says."""
    gcov = tool("gcov")
    program = compiled(folder / "counting", "-O0", "-pthread", "--coverage", source)
    subprocess.run([str(program)], cwd=folder, check=True, capture_output=True)
    notes = next(folder.glob("*.gcno"))
    subprocess.run([gcov, "-o", str(folder), str(notes)], cwd=folder, check=True, capture_output=True)
    text = (folder / f"{source.name}.gcov").read_text()
    lines = re.findall(r"^ *(\d+)\*?: *(\d+):", text, re.MULTILINE)
    return {int(line): int(count) for count, line in lines}


def recorded(source: Path, folder: Path) -> ptkit.Trace:
    program = compiled(folder / "program", "-O0", "-g", "-static", "-pthread", source)
    return ptkit.open(ptkit.Recorder([program], folder / "out.ptk", backend="emulator", quiet=True).run())


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> ptkit.Trace:
    return recorded(SOURCE, tmp_path_factory.mktemp("lines"))


@pytest.mark.parametrize(
    "name",
    ["names/source_lines", "calls/recursion", "calls/tails", "calls/indirect", "calls/stubs", "names/names"],
)
def test_lines_are_gcovs(name: str, tmp_path: Path) -> None:
    """But for labels alone, of which line tables have no code, and ends of functions, which gcov omits.

    Programs that return twice from a call (setjmp, fork) differ there: gcov counts the call only.
    """
    source = PROGRAMS / f"{name}.c"
    lines = recorded(source, tmp_path).functions(by="line")
    own = np.array([path is not None and path.endswith(source.name) for path in lines["source"]])
    counts = zip(lines["line"][own].tolist(), lines["count"][own].tolist(), strict=True)
    texts = ["", *source.read_text().splitlines()]

    def compared(lines: Iterable[tuple[int, int]]) -> dict[int, int]:
        return {
            line: count for line, count in lines if not re.fullmatch(r" *(case \w+:|\w+:|})", texts[line])
        }

    expected = compared(of_gcov(source, tmp_path).items())
    assert len(expected) > 10
    assert compared(counts) == expected


@dataclass(frozen=True)
class Counted:
    """callgrind's counts of a function."""

    calls: Counter[str]
    instructions: Counter[str]  # of the function alone


def of_callgrind(program: Path, folder: Path) -> Counted:
    """Read callgrind's counts of the program's own source."""
    out = folder / "callgrind.out"
    command = [tool("valgrind"), "--tool=callgrind", f"--callgrind-out-file={out}", str(program)]
    subprocess.run(command, check=True, capture_output=True)
    names: dict[str, str] = {}

    def name_of(text: str) -> str:
        number, _, name = text.partition(" ")
        if name:
            names[number] = re.sub(r"'\d+$", "", name)  # a level of recursion
        return names[number]

    counted = Counted(Counter(), Counter())
    function = callee = ""
    of_call = False
    for line in out.read_text().splitlines():
        key, _, value = line.partition("=")
        if key == "fn":
            function = name_of(value)
        elif key == "cfn":
            callee = name_of(value)
        elif key == "calls":
            counted.calls[callee] += int(value.split()[0])
            of_call = True
        elif cost := re.fullmatch(r"[-+*\d]+ (\d+)", line):
            if not of_call:
                counted.instructions[function] += int(cost[1])
            of_call = False
    return counted


def test_functions_are_callgrinds(trace: ptkit.Trace, tmp_path: Path) -> None:
    program = compiled(tmp_path / "program", "-O0", "-g", "-static", SOURCE)
    expected = of_callgrind(program, tmp_path)
    own = re.findall(r"^(?:static )?\w+ (\w+)\(", SOURCE.read_text(), re.MULTILINE)
    assert len(own) == 8
    functions = trace.functions(columns=["function", "count", "self_instructions"])
    columns = (functions[name].tolist() for name in functions.columns)
    found = {name: (count, instructions) for name, count, instructions in zip(*columns, strict=True)}
    for name in own:
        assert found[name] == (expected.calls[name], expected.instructions[name]), name


def test_lines_have_all_instructions(trace: ptkit.Trace) -> None:
    lines = trace.functions(by="line")
    assert lines["self_instructions"].sum() == len(trace.instructions(columns=["cls"]))
    assert set(lines["instructions"] == lines["self_instructions"]) == {True}


def test_lines_of_a_function(trace: ptkit.Trace) -> None:
    """A selection by address has the lines of that code alone, with the same counts."""
    columns = ["source", "line", "count", "instructions", "entry_ip"]
    every = trace.functions(by="line", columns=columns)
    some = trace.functions(by="line", columns=columns, symbol="chosen")
    [(_, address, size)] = trace.symbols("chosen")
    inside = (every["entry_ip"] >= address) & (every["entry_ip"] < address + size)
    assert inside.any()
    for name in ("line", "instructions", "count"):
        assert sorted(every[name][inside].tolist()) == sorted(some[name].tolist())
