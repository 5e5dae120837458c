"""Names of columns: with the rows on a terminal, on standard error where rows go to a pipe."""

from __future__ import annotations

from pathlib import Path

import pytest
from compiling import build

import ptkit
from ptkit.cli import main

VERBS = {
    "packets": "offset",
    "branches --limit 9": "TSC [ticks]",
    "instructions --limit 9": "address",
    "events": "TSC [ticks]",
    "edges --limit 9": "count",
    "edges --by function --limit 9": "count",
    "functions --limit 9": "self",
    "functions --by line --limit 9": "self",
    "functions --histogram fib": "from",
    "tree": "total",
    "calls --limit 9": "duration",
    "calls --slowest 2": "instructions",
}


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("headings")
    ptkit.record([str(build("calls", folder, "-O1"))], output=folder / "calls.ptk")
    return str(folder / "calls.ptk")


@pytest.mark.parametrize(("verb", "first"), VERBS.items())
def test_pipes_have_rows_alone(
    verb: str,
    first: str,
    recording: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    name, *options = verb.split()

    def printed(*more: str) -> tuple[list[str], list[str]]:
        assert main([name, recording, *options, *more]) == 0
        captured = capsys.readouterr()
        return captured.out.splitlines(), captured.err.splitlines()

    rows, (heading, *notes) = printed()
    assert heading.strip().startswith(first)
    assert rows
    assert printed("--no-header") == (rows, notes)
    assert not any(line.strip().startswith(f"{first} ") for line in rows)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    shown, others = printed("--time-unit", "tsc") if "TSC" in first else printed()
    assert shown[0].strip().startswith(first)
    assert len(shown) == 1 + len(rows)
    assert others == notes
    assert len(printed("--no-header")[0]) == len(rows)


def test_json_has_no_heading(recording: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["branches", recording, "--limit", "3", "--json"]) == 0
    captured = capsys.readouterr()
    assert all(line.startswith("{") for line in captured.out.splitlines())
    assert "TSC" not in captured.err


@pytest.mark.parametrize("verb", ["functions", "edges", "tree", "calls", "threads", "branches"])
@pytest.mark.parametrize("word", ["--top", "-n", "--head"])
def test_one_word_for_how_many(
    verb: str, word: str, recording: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main([verb, recording, word, "3"])
    assert f"there is no option {word}; did you mean --limit?" in capsys.readouterr().err


@pytest.mark.parametrize("verb", ["edges", "branches"])
def test_all_rows_are_printed_without_an_option(
    verb: str, recording: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main([verb, recording, "--all"])
    assert "there is no option --all: without --limit, all are printed" in capsys.readouterr().err


def test_edges_by_direction(recording: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    trace = ptkit.open(recording)
    for option, taken in (("--taken", True), ("--not-taken", False)):
        assert main(["edges", recording, option]) == 0
        counts = [int(line.split()[0]) for line in capsys.readouterr().out.splitlines()]
        assert sorted(counts) == sorted(trace.edges(taken=taken)["count"].tolist())
        assert len(counts) > 10
