"""``ptkit coverage``: what is printed of sets, exit status for CI, JSON, refusals."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from compiling import PROGRAMS, compiled, line_with
from test_json import DOCUMENTS, assert_fits

import ptkit
from ptkit.cli import main

SOURCE = PROGRAMS / "branches" / "inputs.c"
line = partial(line_with, SOURCE)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Recordings of both branches of a program, and of another build of it."""
    folder = tmp_path_factory.mktemp("coverage")
    (folder / "other").mkdir()
    flags = "-g", "-static", "-Wl,--build-id"
    program = compiled(folder / "inputs", "-O0", *flags, SOURCE)
    other = compiled(folder / "other" / "inputs", "-O0", "-fomit-frame-pointer", *flags, SOURCE)
    for name, command in (
        ("left", [program, "left"]),
        ("right", [program, "right"]),
        ("other", [other, "right"]),
    ):
        ptkit.Recorder(
            [str(word) for word in command], folder / f"{name}.ptk", backend="emulator", quiet=True
        ).run()
    return folder


@pytest.fixture(autouse=True)
def here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)


def printed(capsys: pytest.CaptureFixture[str], *words: str, status: int = 0) -> tuple[list[str], str]:
    assert main(["coverage", *words]) == status
    captured = capsys.readouterr()
    return captured.out.splitlines(), captured.err


def lines_of(printed_lines: list[str]) -> set[int]:
    """Numbers of the lines of the program's source."""
    return {int(one.rpartition(":")[2]) for one in printed_lines if f"{SOURCE.name}:" in one}


def document(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert main(["coverage", *words, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert_fits(DOCUMENTS, "coverage", found)
    return found


def test_the_summary_has_shares(capsys: pytest.CaptureFixture[str]) -> None:
    found = document(capsys, "left.ptk")
    total = {row["by"]: row for row in found["summary"] if row["name"] is None}
    assert (found["by"], found["elements"], found["lower_bound"]) == (None, [], False)
    of_source = [row for row in found["summary"] if (row["name"] or "").endswith(SOURCE.name)]
    assert [row["covered"] for row in of_source] == [total["line"]["covered"]]
    assert total["line"]["percent"] == pytest.approx(100 * total["line"]["covered"] / total["line"]["total"])
    assert total["block"]["total"] is None
    lines, _ = printed(capsys, "left.ptk")
    share = f"{total['line']['percent']:.1f}%"
    assert lines[0].split() == [str(total["line"]["covered"]), str(total["line"]["total"]), share, "lines"]
    assert lines[2].split()[1:] == ["-", "-", "blocks"]


def test_one_recording_without_the_others(capsys: pytest.CaptureFixture[str]) -> None:
    lines, _ = printed(capsys, "left.ptk", "right.ptk", "--only-in", "right.ptk", "--by", "line")
    assert line("sum -= rounds;") in lines_of(lines)
    assert not {line("sum += i;"), line("return 0;")} & lines_of(lines)
    lines, _ = printed(capsys, "left.ptk", "right.ptk", "--by", "line")
    assert {line("sum -= rounds;"), line("sum += i;"), line("return 0;")} <= lines_of(lines)
    words = ("left.ptk", "right.ptk", "--only-in", "left.ptk", "--by", "function")
    found = document(capsys, *words)
    assert "left" in {one["function"] for one in found["elements"]}
    assert not {"right", "main"} & {one["function"] for one in found["elements"]}
    assert [(run["source"], run["is_added"]) for run in found["runs"]] == [
        ("left.ptk", True),
        ("right.ptk", False),
    ]


def test_a_function_is_selected(capsys: pytest.CaptureFixture[str]) -> None:
    lines, notes = printed(capsys, "left.ptk", "--symbol", "left", "--by", "function")
    assert [one.split()[-1] for one in lines] == ["left"]
    assert "1 of 1 function (100.0 %)" in notes
    blocks = document(capsys, "left.ptk", "--symbol", "left", "--by", "block")["elements"]
    assert {one["function"] for one in blocks} == {"left"}
    assert sum(one["instructions"] * one["count"] for one in blocks) == sum(
        one["instructions"]
        for one in document(capsys, "left.ptk", "--symbol", "left", "--by", "function")["elements"]
    )


def test_too_little_ends_with_status_1(capsys: pytest.CaptureFixture[str]) -> None:
    percent = next(row["percent"] for row in document(capsys, "left.ptk")["summary"])
    printed(capsys, "left.ptk", "--fail-under", f"{percent - 0.1:.1f}")
    _, error = printed(capsys, "left.ptk", "--fail-under", f"{percent + 0.1:.1f}%", status=1)
    assert "lines ran, and --fail-under is" in error
    printed(capsys, "left.ptk", "--by", "function", "--fail-under", "90", status=1)


def test_sets_are_written_and_read(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    whole, _ = printed(capsys, "left.ptk", "right.ptk", "--by", "line", "-o", "both.cov")
    again, _ = printed(capsys, "both.cov", "--by", "line")
    assert again == whole
    lines, _ = printed(capsys, "both.cov", "left.ptk", "--only-in", "both.cov", "--by", "line")
    assert line("sum -= rounds;") in lines_of(lines)
    printed(capsys, "left.ptk", "-o", "both.cov")
    (folder / "notes.txt").write_text("mine")
    _, error = printed(capsys, "left.ptk", "-o", "notes.txt", status=2)
    assert "is no set of coverage; --force overwrites it" in error
    assert (folder / "notes.txt").read_text() == "mine"


def test_two_builds_compare_by_line_alone(capsys: pytest.CaptureFixture[str]) -> None:
    _, error = printed(capsys, "left.ptk", "other.ptk", status=2)
    assert "inputs: two builds of the file ran" in error
    words = ("left.ptk", "other.ptk", "--only-in", "other.ptk", "--by", "line")
    lines, notes = printed(capsys, *words)
    assert "ran another build: lines are compared by their numbers" in notes
    assert line("sum -= rounds;") in lines_of(lines)
    assert line("return 0;") not in lines_of(lines)


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("left.ptk", "--only-in", "left.ptk"), "compares with other recordings"),
        (("left.ptk", "--only-in", "gone.ptk"), "is none of the recordings: left.ptk"),
        (("left.ptk", "--by", "block", "--fail-under", "5"), "does not go with --by block"),
        (("left.ptk", "-o", "left.ptk"), "is what is read"),
    ],
)
def test_what_says_nothing_is_refused(
    words: tuple[str, ...], error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    _, printed_error = printed(capsys, *words, status=2)
    assert error in printed_error


def test_without_debug_information_a_percentage_is_an_error(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bare = compiled(folder / "bare", "-O0", "-static", SOURCE)
    ptkit.Recorder([str(bare), "left"], folder / "bare.ptk", backend="emulator", quiet=True).run()
    lines, _ = printed(capsys, "bare.ptk")
    assert lines[0].split() == ["0", "-", "-", "lines"]
    _, error = printed(capsys, "bare.ptk", "--fail-under", "1", status=2)
    assert "it is not known which lines could have run" in error


def test_losses_are_warnings(
    folder: Path, packets: Any, loop: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    [(address, code)] = loop.images()[0].items()
    (folder / "loop.bin").write_bytes(code)
    (folder / "loop.pt").write_bytes(loop.stream(10) + b"\x02\xff" + loop.stream(10))
    words = ("loop.pt", "--code", f"loop.bin@{address:#x}")
    _, error = printed(capsys, *words)
    assert "warning: lower bound: loop.pt: " in error
    assert "ran in no file" in error
    assert document(capsys, *words)["lower_bound"] is True
