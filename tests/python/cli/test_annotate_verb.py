"""``ptkit annotate``: lines, JSON, the file that it writes, refusals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from compiling import build
from rounds import needs_emulator
from test_json import DOCUMENTS, assert_fits

import ptkit
from ptkit.cli import main

pytestmark = needs_emulator
ROUNDS = 6


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("annotate")
    program = build("counted_loops", folder, "-g")
    command = [str(program), str(ROUNDS)]
    ptkit.Recorder(command, folder / "loops.ptk", backend="emulator", quiet=True).run()
    return folder


@pytest.fixture(autouse=True)
def here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)


def printed(capsys: pytest.CaptureFixture[str], *words: str, status: int = 0) -> tuple[list[str], str]:
    assert main(["annotate", "loops.ptk", *words]) == status
    captured = capsys.readouterr()
    return captured.out.splitlines(), captured.err


def document(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads("\n".join(printed(capsys, *words, "--json")[0]))
    assert_fits(DOCUMENTS, "annotate", found)
    return found


def test_lines_are_those_of_python(capsys: pytest.CaptureFixture[str]) -> None:
    lines, notes = printed(capsys, "--symbol", "leaf")
    trace = ptkit.open("loops.ptk")
    assert [one.rstrip() for one in lines] == repr(trace.annotate("leaf")).splitlines()
    assert f": {100 * ROUNDS:,} calls, " in lines[0]
    assert notes == ""
    source, _ = printed(capsys, "--symbol", "leaf", "--source")
    assert any(one.endswith("counted_loops.c") for one in source)
    assert any(one.split()[:1] == [str(100 * ROUNDS)] for one in source)


def test_json_has_the_tables(capsys: pytest.CaptureFixture[str]) -> None:
    found = document(capsys, "--symbol", "main")
    assert (found["symbol"], found["output"], found["lower_bound"]) == ("main", None, False)
    (function,) = found["functions"]
    annotation = ptkit.open("loops.ptk").annotate("main")
    assert function["instructions"] == sum(row["count"] for row in function["code"])
    assert [row["count"] for row in function["code"]] == annotation.instructions["count"].tolist()
    assert [row["entries"] for row in function["loops"]] == annotation.loops["entries"].tolist()
    assert [row["text"] for row in function["lines"]] == annotation.lines.named("text")
    assert any(row["taken"] is not None for row in function["code"])


def test_the_file_is_replaced_if_it_is_a_page(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    for _ in range(2):
        lines, _ = printed(capsys, "--symbol", "leaf", "-o", "leaf.html")
        assert lines == [f"leaf.html: {(folder / 'leaf.html').stat().st_size:,} bytes"]
    (folder / "notes.txt").write_text("mine")
    _, error = printed(capsys, "--symbol", "leaf", "-o", "notes.txt", status=2)
    assert "notes.txt: is no page of ptkit; --force replaces it" in error
    found = document(capsys, "--symbol", "leaf", "-o", "notes.txt", "--force")
    assert (found["output"], found["bytes"]) == ("notes.txt", (folder / "notes.txt").stat().st_size)
    _, error = printed(capsys, "--symbol", "leaf", "-o", "loops.ptk", status=2)
    assert "is what is read" in error


def test_redacted_output_names_no_files(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    printed(capsys, "--symbol", "leaf", "--redact", "-o", "redacted.html")
    text = (folder / "redacted.html").read_text()
    assert "counted_loops" not in text
    assert f"{100 * ROUNDS:,} calls" in text
    _, error = printed(capsys, "--symbol", "leaf", "--redact", "--source", status=2)
    assert "redacted code has no source lines" in error


def test_functions_are_bounded(capsys: pytest.CaptureFixture[str]) -> None:
    lines, notes = printed(capsys, "--symbol", "*", "--limit", "2", "--module", "counted_loops")
    assert sum(" calls, " in one or " call, " in one for one in lines) == 2
    assert "more functions of this name ran: functions=N, --limit N shows N of them" in notes


def test_an_unknown_function_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    _, error = printed(capsys, "--symbol", "leav", status=2)
    assert error.strip() == "ptkit annotate: error: no symbol 'leav'; did you mean leaf?"
    _, notes = printed(capsys, "--symbol", "leaf", "--time", "0%-0.001%")
    assert "leaf: did not run, or not in what is selected" in notes
