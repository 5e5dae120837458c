"""Stacks that programs leave and resume by themselves: counts are true, and what is not certain is said."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from call_bounds import check_view, false_counts, false_instructions
from call_code import code_of
from call_comparison import of_table, of_truth
from call_log import read_log
from call_truth import true_frames
from compiling import build, compiled_by

import ptkit
from ptkit import capture
from ptkit.selftest.logged import LoggedRecorder

pytestmark = pytest.mark.skipif(
    not any(one.name == "emulator" and one.available for one in capture.probe()),
    reason="no emulator here: " + "; ".join(f"{one.name}: {one.detail}" for one in capture.probe()),
)

Output = Callable[[], str]


@pytest.fixture
def output(capfd: pytest.CaptureFixture[str]) -> Output:
    return lambda: capfd.readouterr().out


def recorded(program: Path, folder: Path) -> ptkit.Trace:
    recording = LoggedRecorder(
        [program], folder / "out.ptk", backend="emulator", quiet=False, transfers=folder
    ).run()
    assert recording.exit_status == 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ptkit.PtkitWarning)
        return ptkit.open(recording)


def said(text: str) -> dict[str, int]:
    """Counts of the program: names and numbers."""
    return {name: int(number) for name, number in re.findall(r"(\w+) (\d+)", text)}


def counted(trace: ptkit.Trace, names: dict[str, int], prefix: str = "") -> dict[str, Any]:
    """The rows of functions that the program counts."""
    functions: Any = trace.functions()
    rows = {name: row for row, name in enumerate(functions.named("function"))}
    return {name: functions[np.array([rows[prefix + name]])] for name in names}


def check(trace: ptkit.Trace, text: str, prefix: str = "") -> None:
    """Counts of begins are exact; what is not certain is said."""
    expected = said(text)
    assert expected
    rows = counted(trace, expected, prefix)
    assert {name: int(row["count"][0]) for name, row in rows.items()} == expected
    assert false_counts(trace) == []
    assert false_instructions(trace) == []
    check_view(trace)


def wrong_exact_frames(trace: ptkit.Trace, folder: Path) -> list[str]:
    """Frames that are said to be exact, and differ from what the stack pointer shows."""
    calls: Any = trace.calls()
    wrong = []
    for number, stream in enumerate(trace.streams):
        code = code_of(trace, stream.space)
        log = read_log(folder / f"stream-{number}.transfers", code)
        frames = true_frames(log)
        true = of_truth(frames)
        rows = calls[np.flatnonzero((calls["stream"] == number) & calls["exact"])]
        found = of_table(rows)
        key = zip(
            true.columns["entry_ip"].tolist(),
            true.columns["call_ip"].tolist(),
            true.columns["instructions"].tolist(),
            strict=True,
        )
        known = set(key)
        for one in zip(
            found.columns["entry_ip"].tolist(),
            found.columns["call_ip"].tolist(),
            found.columns["instructions"].tolist(),
            strict=True,
        ):
            if one[0] and one not in known:
                wrong.append(f"stream {number}: {code.name(one[0])} {one}")
    return wrong


@pytest.mark.parametrize("form", range(4), ids=["ret", "jmp", "xchg", "inline"])
@pytest.mark.parametrize(
    "shape",
    [(), ("-DRING",), ("-DDEPTHS=3",), ("-DRING", "-DDEPTHS=3")],
    ids=["scheduled", "ring", "depths", "ring-depths"],
)
def test_fibers(form: int, shape: tuple[str, ...], tmp_path: Path, output: Output) -> None:
    program = build("calls/fibers", tmp_path, "-fcf-protection=none", f"-DFORM={form}", *shape)
    trace = recorded(program, tmp_path)
    check(trace, output())
    assert wrong_exact_frames(trace, tmp_path) == []


@pytest.mark.slow
def test_thousands_of_switches(tmp_path: Path, output: Output) -> None:
    program = build(
        "calls/fibers", tmp_path, "-fcf-protection=none", "-DFIBERS=40", "-DROUNDS=100", "-DDEPTHS=5"
    )
    check(recorded(program, tmp_path), output())


@pytest.mark.parametrize("shape", [(), ("-DRING",)], ids=["home", "ring"])
def test_longjmp_between_stacks(shape: tuple[str, ...], tmp_path: Path, output: Output) -> None:
    program = build("calls/jumping", tmp_path, "-fcf-protection=none", *shape)
    trace = recorded(program, tmp_path)
    check(trace, output())
    assert wrong_exact_frames(trace, tmp_path) == []


def test_fibers_that_other_threads_take(tmp_path: Path, output: Output) -> None:
    program = build("calls/stealing", tmp_path, "-fcf-protection=none")
    trace = recorded(program, tmp_path)
    check(trace, output())
    assert wrong_exact_frames(trace, tmp_path) == []
    outer = counted(trace, {"outer": 8})["outer"]
    assert not outer["count_exact"][0]
    assert len(trace.stack_anomalies) > 0


def test_goroutines_that_other_threads_take(
    tmp_path: Path, output: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOMAXPROCS", "4")
    trace = recorded(compiled_by("go", "calls/workers.go", tmp_path, "build"), tmp_path)
    check(trace, output() + " main 1", "main.")
