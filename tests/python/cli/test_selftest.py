"""`ptkit selftest` on a machine without Processor Trace: what it checks, and what it says of the rest."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest

import ptkit
from ptkit import capture
from ptkit.capture import ptrace
from ptkit.cli import main
from ptkit.selftest import session

pytestmark = [
    pytest.mark.skipif(
        bool(ptrace.refused()[0]), reason="no single stepping here; `ptkit doctor` says what is missing"
    ),
]
TRACES = any(one.available for one in capture.probe() if one.name in ("perf", "driver"))
ABSENT = 3
PATHS = {"PYTHONPATH": str(Path(ptkit.__file__).parents[1])}


def test_programs_are_the_same_in_each_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["selftest", "--backend", "step"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[:3] == ["step", "programs", "passed"]
    assert lines[-1].endswith("0 failed, 0 unavailable (1 round)") or "unavailable" in lines[1]


@pytest.mark.skipif(TRACES, reason="this processor traces")
def test_exit_status_says_that_nothing_was_tested(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "report.json"
    assert main(["selftest", "--report", str(path)]) == ABSENT
    out = capsys.readouterr().out
    assert out.splitlines()[-1].startswith("No tracing by the processor itself was checked")
    document = json.loads(path.read_text())
    missing = [one for one in document["checks"] if one["backend"] != "step"]
    assert len(missing) > 20
    assert all(one["result"] == "unavailable" and one["detail"] for one in missing)
    assert document["failed"] == 0
    assert str(tmp_path) not in path.read_text()


def test_rounds_repeat_until_the_time_is_over(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ticks = count()  # the first is the beginning, and each check takes two
    monkeypatch.setattr(session, "time", SimpleNamespace(monotonic=lambda: float(next(ticks))))
    words = ["selftest", "--backend", "step", "--check", "programs", "--seconds", "4", "--json"]
    assert main(words) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["rounds"] == 2
    assert document["passed"] == 1


def test_ctrl_c_leaves_a_report(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    words = ["selftest", "--backend", "step", "--seconds", "100", "--report", str(path)]
    with subprocess.Popen(
        [sys.executable, "-m", "ptkit", *words], stdout=subprocess.PIPE, text=True, env=os.environ | PATHS
    ) as command:
        assert command.stdout is not None
        assert command.stdout.readline().startswith("step")
        command.send_signal(signal.SIGINT)
        assert command.wait(120) == 130
    assert json.loads(path.read_text())["checks"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--check", "nothing"], "there are"),
        (["--cpu", "65535"], "may not use processor 65535"),
        (["--report", "."], "this is a folder; name a file"),
        (["--report", "/no/such/folder/report"], "it cannot be written"),
    ],
)
def test_wrong_options(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["selftest", *words]) == 2
    assert message in capsys.readouterr().err


def test_seconds_must_be_a_number(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["selftest", "--seconds", "soon"])
    assert "'soon' is no number of seconds" in capsys.readouterr().err
