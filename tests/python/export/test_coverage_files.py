"""Coverage in files of other tools: LCOV's tracefile, which genhtml reads; drcov and offsets of sets."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import Counter
from functools import partial
from pathlib import Path

import pytest
from compiling import PROGRAMS, compiled, line_with
from test_blocks import read_drcov

import ptkit
from ptkit import export
from ptkit.cli import main

SOURCE = PROGRAMS / "branches" / "inputs.c"
TEXTS = ["", *SOURCE.read_text().splitlines()]
line = partial(line_with, SOURCE)


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> ptkit.Trace:
    folder = tmp_path_factory.mktemp("lcov")
    program = compiled(folder / "inputs", "-O0", "-g", "-static", SOURCE)
    command = [str(program), "left"]
    return ptkit.open(ptkit.Recorder(command, folder / "left.ptk", backend="emulator", quiet=True).run())


def records(path: Path) -> dict[str, list[str]]:
    """Values of the records of the program's source, by name."""
    [section] = [one for one in path.read_text().split("end_of_record\n") if f"SF:{SOURCE}\n" in one]
    found: dict[str, list[str]] = {}
    for line in section.splitlines():
        name, _, value = line.partition(":")
        found.setdefault(name, []).append(value)
    return found


def test_the_file_has_the_tables(trace: ptkit.Trace, tmp_path: Path) -> None:
    path = tmp_path / "left.info"
    done = trace.export(path)
    assert (done.format, done.bytes) == ("lcov", path.stat().st_size)
    found = records(path)
    coverage = trace.coverage()
    lines = {int(number): int(count) for number, count in (one.split(",") for one in found["DA"])}
    own = coverage.lines.where(source=str(SOURCE))
    ran = dict(zip(own.named("line"), own.named("count"), strict=True))
    assert {number: count for number, count in lines.items() if count} == ran
    assert lines[line("sum -= rounds;")] == lines[line("right(i);")] == 0
    assert (found["LF"], found["LH"]) == ([str(len(lines))], [str(len(ran))])
    outcomes = Counter(tuple(map(int, (one.split(",")[0], one.split(",")[3]))) for one in found["BRDA"])
    branches = coverage.branches.where(source=str(SOURCE))
    expected = Counter(
        (number, count)
        for name in ("taken", "not_taken")
        for number, count in zip(branches.named("line"), branches.named(name), strict=True)
    )
    assert outcomes == expected
    assert found["BRF"] == [str(2 * len(branches))]
    entries = {name: int(count) for count, name in (one.split(",") for one in found["FNDA"])}
    assert entries == {"left": 1, "right": 0, "never": 0, "main": 1}
    begins = {name: int(number) for number, name in (one.split(",") for one in found["FN"])}
    assert {TEXTS[number].split("(")[-2].split()[-1] for number in begins.values()} == set(entries)


def test_sets_and_selections_are_written(
    trace: ptkit.Trace, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole, of_set, of_verb, part = (tmp_path / f"{name}.info" for name in ("whole", "set", "verb", "part"))
    trace.export(whole)
    coverage = trace.coverage()
    export.export(coverage, of_set)
    assert main(["coverage", trace.source, "-o", str(of_verb)]) == 0
    assert of_set.read_text() == of_verb.read_text() == whole.read_text()
    trace.export(part, symbol="left")
    assert [one.split(",")[1] for one in records(part)["FN"]] == ["left"]
    export.export(coverage - trace.coverage(symbol="left"), part)
    assert "1,left" not in records(part)["FNDA"]
    with pytest.raises(ptkit.ConfigError, match="was selected when it was made"):
        export.export(coverage, part, symbol="left")
    with pytest.raises(ptkit.ConfigError, match="lines alone"):
        export.export(coverage.by_line(), part)
    capsys.readouterr()


def test_without_debug_information_a_note_says_so(tmp_path: Path) -> None:
    program = compiled(tmp_path / "bare", "-O0", "-static", "-s", SOURCE)
    trace = ptkit.open(
        ptkit.Recorder([str(program)], tmp_path / "bare.ptk", backend="emulator", quiet=True).run()
    )
    done = trace.export(tmp_path / "bare.info")
    assert (tmp_path / "bare.info").read_text() == "TN:\n"
    assert "lines that did not run are not known" in done.notes[0]


def test_genhtml_reads_it(trace: ptkit.Trace, tmp_path: Path) -> None:
    genhtml = shutil.which("genhtml")
    if genhtml is None:
        pytest.skip("genhtml is not installed (package lcov)")
    path = tmp_path / "left.info"
    trace.export(path)
    done = subprocess.run(
        [genhtml, "--branch-coverage", str(path), "-o", str(tmp_path / "html")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "warning" not in (done.stdout + done.stderr).lower()
    found = records(path)
    shown = dict(re.findall(r"(lines|functions|branches)\.*: .*\((\d+ of \d+)", done.stdout))
    expected = {
        name: f"{found[f'{key}H'][0]} of {found[f'{key}F'][0]}"
        for name, key in (("lines", "L"), ("functions", "FN"), ("branches", "BR"))
    }
    assert shown == expected


def executed_bytes(path: Path) -> set[tuple[str, int]]:
    """Module and RVA of each byte of the blocks of a drcov file."""
    found = read_drcov(path)
    names = [path for *_, path in found.modules]
    return {(names[module], at) for module, start, size in found.blocks for at in range(start, start + size)}


def test_drcov_of_a_set_has_the_bytes_of_the_traces(
    trace: ptkit.Trace, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    of_trace, of_set, of_verb = (tmp_path / f"{name}.drcov" for name in ("trace", "set", "verb"))
    trace.export(of_trace)
    coverage = trace.coverage()
    export.export(coverage, of_set)
    assert executed_bytes(of_set) == executed_bytes(of_trace)
    assert main(["coverage", trace.source, "-o", str(of_verb)]) == 0
    assert of_verb.read_bytes() == of_set.read_bytes()
    only = coverage - trace.coverage(symbol="left")
    export.export(only, of_set)
    rest = executed_bytes(of_set)
    trace.export(of_trace, symbol="left")
    [(_, address, size)] = trace.symbols("left")
    base = trace.info.modules[0].base
    own = {
        (name, at) for name, at in executed_bytes(of_trace) if address - base <= at < address - base + size
    }
    assert own
    assert not own & rest
    capsys.readouterr()


def test_offsets_of_a_set_have_its_counts(trace: ptkit.Trace, tmp_path: Path) -> None:
    of_trace, of_set = tmp_path / "trace.txt", tmp_path / "set.txt"
    trace.export(of_trace, "offsets", hits=True)
    coverage = trace.coverage()
    export.export(coverage | coverage, of_set, format="offsets", hits=True)
    once, twice = (
        {at: int(count) for at, count in map(str.split, path.read_text().splitlines())}
        for path in (of_trace, of_set)
    )
    assert len(twice) == len(coverage.blocks)
    common = once.keys() & twice.keys()
    assert len(common) > len(twice) // 2
    assert all(twice[at] == 2 * once[at] for at in common)
    with pytest.raises(ptkit.ConfigError, match="has RVAs alone"):
        export.export(coverage, of_set, format="offsets", file_offsets=True)
