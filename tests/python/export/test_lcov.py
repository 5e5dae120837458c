"""LCOV's tracefile: equal to the tables of coverage, and read by genhtml."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from compiling import PROGRAMS, compiled

import ptkit
from ptkit import export
from ptkit.cli import main

SOURCE = PROGRAMS / "branches" / "inputs.c"
TEXTS = ["", *SOURCE.read_text().splitlines()]


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


def line(text: str) -> int:
    [number] = [number for number, one in enumerate(TEXTS) if text in one]
    return number


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
    assert done.bytes == 0
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
