"""Options that say nothing of what is printed are refused: none is ignored without a word."""

from __future__ import annotations

import pytest
from compiling import build

import ptkit
from ptkit.cli import main


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("unused")
    program = build("slow", folder, "-static")
    ptkit.record([str(program)], output=folder / "calls.ptk")
    return str(folder / "calls.ptk")


def refused(capsys: pytest.CaptureFixture[str], recording: str, verb: str, words: str) -> str:
    assert main([verb, recording, *words.split()]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err


@pytest.mark.parametrize("report", ["--histogram", "--slow"])
@pytest.mark.parametrize(
    "words",
    ["--symbol main", "--by line", "--sort p99", "--tails replaced", "--inlines", "--imports", "--rva"],
)
def test_a_report_of_one_function_has_its_own_name(
    report: str, words: str, recording: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = refused(capsys, recording, "functions", f"{report} handle {words}")
    assert f"{words.split()[0]} does not go with {report}" in text


@pytest.mark.parametrize(
    ("verb", "words", "error"),
    [
        ("functions", "--histogram handle --limit 3", "--limit does not go with --histogram"),
        ("functions", "--histogram handle --all", "--all does not go with --histogram"),
        ("functions", "--histogram handle --slow-from 9", "--slow-from does not go with --histogram"),
        ("functions", "--slow handle --frames mixed", "--frames does not go with --slow"),
        ("functions", "--slow-from 90%", "--slow-from goes with --slow NAME"),
        ("functions", "--by module --fast-to 10%", "--fast-to goes with --slow NAME"),
        ("functions", "--by line --of time", "--of does not go with --by line"),
        ("functions", "--by line --tails replaced", "--tails does not go with --by line"),
        ("functions", "--by line --sort max", "--sort max does not go with --by line"),
        ("functions", "--by line --inlines", "--inlines does not go with --by line"),
        ("functions", "--by module --imports", "--imports does not go with --by module"),
        ("tree", "--limit 2 --all", "--all does not go with --limit"),
        ("calls", "--slowest 2 --limit 1", "--limit does not go with --slowest"),
        ("calls", "--slowest 2 --all", "--all does not go with --slowest"),
        ("calls", "--around 50% --symbol main", "--symbol does not go with --around"),
        ("calls", "--around 50% --module calls", "--module does not go with --around"),
        ("calls", "--around 50% --time 10%-20%", "--time does not go with --around"),
        ("calls", "--id 3 --slowest 2", "--id does not go with --slowest"),
        ("edges", "--no-symbols --names full", "--names does not go with --no-symbols"),
        ("branches", "--no-symbols --file-offsets", "--file-offsets does not go with --no-symbols"),
        ("instructions", "--no-inst --names short", "--names does not go with --no-inst"),
        ("instructions", "--no-events --status", "--status does not go with --no-events"),
        ("events", "--functions --kind PTWRITE --status", "--status does not go with --functions"),
        ("edges", "--by function --no-symbols", "--no-symbols does not go with --by function"),
        ("edges", "--by module --file-offsets", "--file-offsets does not go with --by module"),
    ],
)
def test_what_another_option_leaves_unused(
    verb: str, words: str, error: str, recording: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert error in refused(capsys, recording, verb, words)


def test_defaults_may_be_written(recording: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--histogram", "handle", "--by", "function", "--frames", "native", "--module", "slow"]
    assert main(["functions", recording, *words]) == 0
    assert "call " in capsys.readouterr().out


def test_no_anomaly_of_a_selection_says_nothing_of_the_others(
    recording: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["calls", recording, "--anomalies"]) == 0
    assert "no anomalies" in capsys.readouterr().err
    assert main(["calls", recording, "--anomalies", "--symbol", "handle"]) == 0
    captured = capsys.readouterr()
    assert "no anomalies" not in captured.err
    assert "no rows match --symbol" in captured.err
