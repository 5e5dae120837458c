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


def text_of_gcov(source: Path, folder: Path) -> str:
    """What gcov says of a program: its lines, with the outcomes of branches after them."""
    gcov = tool("gcov")
    program = compiled(folder / "counting", "-O0", "-pthread", "--coverage", source)
    subprocess.run([str(program)], cwd=folder, check=True, capture_output=True)
    notes = next(folder.glob("*.gcno"))
    command = [gcov, "-b", "-c", "-o", str(folder), str(notes)]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return (folder / f"{source.name}.gcov").read_text()


def of_gcov(source: Path, folder: Path) -> dict[int, int]:
    """Executions of each line of a program, as gcov says."""
    text = text_of_gcov(source, folder)
    lines = re.findall(r"^ *(\d+)\*?: *(\d+):", text, re.MULTILINE)
    return {int(line): int(count) for count, line in lines}


def recorded(source: Path, folder: Path) -> ptkit.Trace:
    program = compiled(folder / "program", "-O0", "-g", "-static", "-pthread", source)
    return ptkit.open(ptkit.Recorder([program], folder / "out.ptk", backend="emulator", quiet=True).run())


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> ptkit.Trace:
    return recorded(SOURCE, tmp_path_factory.mktemp("lines"))


LINES = ["source_lines", "line_rules", "names"], ["recursion", "tails", "indirect", "stubs"]


@pytest.mark.parametrize(
    "name",
    [f"{folder}/{one}" for folder, some in zip(("names", "calls"), LINES, strict=True) for one in some],
)
def test_lines_are_gcovs(name: str, tmp_path: Path) -> None:
    """But for labels alone, of which line tables have no code, and ends of functions, which gcov omits.

    Programs that return twice from a call (setjmp, fork) differ there: gcov counts the call only.
    """
    source = PROGRAMS / f"{name}.c"
    trace = recorded(source, tmp_path)
    texts = ["", *source.read_text().splitlines()]

    def compared(lines: Iterable[tuple[int, int]]) -> dict[int, int]:
        return {
            line: count for line, count in lines if not re.fullmatch(r" *(case \w+:|\w+:|})", texts[line])
        }

    def of(lines: ptkit.Table) -> dict[int, int]:
        own = np.array([path is not None and path.endswith(source.name) for path in lines.named("source")])
        return compared(zip(lines["line"][own].tolist(), lines["count"][own].tolist(), strict=True))

    expected = compared(of_gcov(source, tmp_path).items())
    assert len(expected) > 10
    assert of(trace.coverage().lines) == expected
    # Line tables have the line of the brace at the begin of a function, and gcov that of its name.
    if name != "names/line_rules":
        assert of(trace.functions(by="line")) == expected


def branches_of_gcov(source: Path, folder: Path) -> dict[int, Counter[int]]:
    """How often each outcome of each line's branches was taken, for branches that were executed."""
    found: dict[int, Counter[int]] = {}
    number = 0
    for line in text_of_gcov(source, folder).splitlines():
        if counted := re.match(r" *[-#\d]+\*?: *(\d+):", line):
            number = int(counted[1])
        elif taken := re.match(r"branch +\d+ taken (\d+)", line):
            found.setdefault(number, Counter())[int(taken[1])] += 1
    return found


@pytest.mark.parametrize(
    ("name", "least"),
    [("names/source_lines", 24), ("calls/recursion", 10), ("calls/indirect", 4), ("branches/inputs", 2)],
)
def test_branches_are_gcovs(name: str, least: int, tmp_path: Path) -> None:
    """But for `switch`: gcov has an outcome for each label, and -O0 code compares in turn."""
    source = PROGRAMS / f"{name}.c"
    rows = recorded(source, tmp_path).coverage().branches
    texts = ["", *source.read_text().splitlines()]
    found: dict[int, Counter[int]] = {}
    columns = (rows.named(column) for column in ("source", "line", "taken", "not_taken"))
    for path, line, taken, not_taken in zip(*columns, strict=True):
        if path is not None and path.endswith(source.name):
            found.setdefault(line, Counter()).update([taken, not_taken])
    expected = branches_of_gcov(source, tmp_path)

    def compared(branches: dict[int, Counter[int]]) -> dict[int, Counter[int]]:
        return {line: of for line, of in branches.items() if "switch (" not in texts[line]}

    assert sum(of.total() for of in compared(expected).values()) >= least
    assert compared(found) == compared(expected)


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
