"""``ptkit diff``: what is printed of two runs, exit status, JSON, refusals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from compiling import PROGRAMS, compiled
from test_json import DOCUMENTS, assert_fits

import ptkit
from ptkit.cli import main

SOURCE = PROGRAMS / "branches" / "parting.c"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Recordings of two runs of a program that part, and of one that does not."""
    folder = tmp_path_factory.mktemp("diff")
    program = compiled(
        folder / "parting", "-O1", "-fno-inline", "-g", "-pthread", "-static", "-Wl,--build-id", SOURCE
    )
    words = {"left": "xxxxxx", "right": "number", "exit": "exit", "again": "exit"}
    for name, word in words.items():
        ptkit.Recorder([str(program), word], folder / f"{name}.ptk", backend="emulator", quiet=True).run()
    return folder


@pytest.fixture(autouse=True)
def here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)


def printed(capsys: pytest.CaptureFixture[str], *words: str, status: int = 0) -> tuple[list[str], str]:
    assert main(["diff", *words]) == status
    captured = capsys.readouterr()
    return captured.out.splitlines(), captured.err


def document(capsys: pytest.CaptureFixture[str], *words: str, status: int = 0) -> dict[str, Any]:
    assert main(["diff", *words, "--json"]) == status
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert_fits(DOCUMENTS, "diff", found)
    return found


def test_equal_runs(capsys: pytest.CaptureFixture[str]) -> None:
    lines, errors = printed(capsys, "exit.ptk", "again.ptk", "--exit-code")
    assert lines[:2] == ["a: exit.ptk", "b: again.ptk"]
    assert lines[2].startswith("no difference: ")
    assert len(lines) == 3
    assert errors == ""
    found = document(capsys, "exit.ptk", "again.ptk", "--exit-code")
    assert (found["equal"], found["first"], found["divergences"]) == (True, None, [])


def test_runs_that_part(capsys: pytest.CaptureFixture[str]) -> None:
    lines, _ = printed(capsys, "left.ptk", "right.ptk", "--exit-code", "--context", "2", status=1)
    text = "\n".join(lines)
    assert "parting.c:" in text
    assert sum(" | " in one for one in lines) == 6
    found = document(capsys, "left.ptk", "right.ptk", "--context", "2")
    assert found["equal"] is False
    first = found["first"]
    row = found["divergences"][first["number"]]
    assert row["is_own"]
    assert row["source"] == str(SOURCE)
    assert first["a_stack"][0]["line"] == row["line"]
    assert len(first["context"]["after"]) == 2
    assert f"divergence {first['number']} at {row['where']}" in lines
    assert printed(capsys, "left.ptk", "right.ptk")[0] == [one for one in lines if " | " not in one]


def test_filters_choose_what_counts(capsys: pytest.CaptureFixture[str]) -> None:
    everything = document(capsys, "left.ptk", "right.ptk", "--limit", "1000")["divergences"]
    functions = {row["function"] for row in everything}
    assert len(functions) > 0
    for function in functions:
        found = document(capsys, "left.ptk", "right.ptk", "--symbol", function, "--limit", "1000")
        assert found["divergences"] == [row for row in everything if row["function"] == function]
    own = document(capsys, "left.ptk", "right.ptk", "--own", "--module", "parting", "--limit", "1000")
    assert own["divergences"] == [row for row in everything if row["is_own"]]
    none, _ = printed(capsys, "left.ptk", "right.ptk", "--symbol", "nowhere", "--exit-code")
    assert any(one.startswith("no difference") for one in none)


def test_limit_and_number(capsys: pytest.CaptureFixture[str]) -> None:
    count = len(document(capsys, "left.ptk", "right.ptk", "--limit", "1000")["divergences"])
    assert count > 1
    lines, errors = printed(capsys, "left.ptk", "right.ptk", "--limit", "1")
    assert f"{count - 1:,} more: --limit N" in errors
    lines, _ = printed(capsys, "left.ptk", "right.ptk", "--number", "1")
    assert any(one.startswith("divergence 1 at ") for one in lines)


@pytest.mark.parametrize("by", ["function", "call", "line"])
def test_costs(capsys: pytest.CaptureFixture[str], by: str) -> None:
    lines, _ = printed(capsys, "left.ptk", "right.ptk", "--by", by, "--limit", "3", "--exit-code", status=1)
    found = document(capsys, "left.ptk", "right.ptk", "--by", by, "--limit", "3")
    assert found["by"] == ("line" if by == "line" else "function")
    assert found["divergences"] == []
    assert {table for table in ("functions", "calls", "lines") if found[table]} == {f"{by}s"}
    assert len(found[f"{by}s"]) <= 3
    heads = next(number for number, one in enumerate(lines) if one.split()[-1:] == [by])
    for line, row in zip(lines[heads + 1 :], found[f"{by}s"], strict=True):
        assert f"{row['a_count']:,}" in line.split()
        assert f"{row['b_instructions']:,}" in line.split()
    lines, _ = printed(capsys, "left.ptk", "left.ptk", "--by", by, "--exit-code")
    assert any(one.startswith("no difference") for one in lines)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("left.ptk", "missing.ptk"), "missing.ptk: "),
        (("left.ptk", "right.ptk", "--module", "a.so"), "module='a.so': neither run has such a file; there"),
        (("left.ptk", "right.ptk", "--tid", "1"), "tid=1: neither run has such a thread"),
        (("left.ptk", "right.ptk", "--by", "line", "--time", "0%-50%"), "of whole runs"),
        (("left.ptk", "right.ptk", "--number", "100000"), "divergence 100000: there are "),
    ],
)
def test_errors_are_status_2(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], message: str
) -> None:
    _, error = printed(capsys, *words, "--exit-code", status=2)
    assert message in error
