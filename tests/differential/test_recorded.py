"""Programs recorded by stepping: what is decoded is, instruction by instruction, what was stepped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compiling import COMPILER, build

import ptkit
from ptkit import _core, capture
from ptkit.selftest.logged import LoggedRecorder

pytestmark = [
    pytest.mark.skipif(COMPILER is None, reason="no C compiler (cc, gcc or clang) to build tests/programs"),
    pytest.mark.skipif(
        not any(one.name == "step" and one.available for one in capture.probe()),
        reason="no single stepping here: "
        + "; ".join(f"{one.name}: {one.detail}" for one in capture.probe()),
    ),
]

# Return compression, timing packets, long TNT, PSB period.
FORMS = {
    "all": {},
    "uncompressed": {"return_compression": False, "tnt_64": True},
    "tsc": {"timing": ("tsc",), "psb_period": 2048},
    "tsc-mtc": {"timing": ("tsc", "mtc"), "return_compression": False},
    "untimed": {"timing": (), "tnt_64": True},
}


def check(recording: capture.Recording, truth: Path, engine: str = "ptkit") -> ptkit.Trace:
    """Every stream's instructions equal its log of steps."""
    trace = ptkit.open(recording, engine=engine)
    rows = trace.instructions(columns=["ip", "stream"])
    total = 0
    for stream in range(recording.streams):
        expected = np.fromfile(truth / f"stream-{stream}.u64", dtype=np.uint64)
        found = rows["ip"][rows["stream"] == stream]
        differing = np.flatnonzero(found[: len(expected)] != expected[: len(found)])
        if len(differing):
            at = int(differing[0])
            pytest.fail(f"stream {stream}: instruction {at} is {found[at]:#x}, stepped was {expected[at]:#x}")
        assert len(found) == len(expected), f"stream {stream}"
        total += len(expected)
    assert total == recording.instructions
    assert len(rows) == total
    assert len(trace.errors) == 0, str(trace.errors)
    return trace


def run(program: list[Any], folder: Path, exit_status: int, **form: Any) -> tuple[capture.Recording, Path]:
    recording = LoggedRecorder(
        program, folder / "out.ptk", backend="step", truth=folder, quiet=True, **form
    ).run()
    assert recording.exit_status == exit_status
    return recording, folder


def check_times(trace: ptkit.Trace) -> None:
    for stream in np.unique(trace.branches(columns=["stream"])["stream"]):
        rows = trace.branches(columns=["tsc", "stream"])
        tsc = rows["tsc"][rows["stream"] == stream].astype(np.int64)
        assert (np.diff(tsc) >= 0).all()


def test_program_true_is_recorded(tmp_path: Path) -> None:
    trace = check(*run(["true"], tmp_path, 0))
    check_times(trace)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["branches", "signals"])
def test_recordings_of_each_form_are_the_truth(name: str, form: str, tmp_path: Path) -> None:
    check(*run([build(name, tmp_path, "-static")], tmp_path, 0, **FORMS[form]))


@pytest.mark.parametrize("name", ["branches", "signals"])
def test_libipt_agrees(name: str, tmp_path: Path) -> None:
    if "libipt" not in _core.engines():
        pytest.skip("built without libipt")
    check(*run([build(name, tmp_path, "-static")], tmp_path, 0), engine="libipt")


@pytest.mark.parametrize("form", ["all", "tsc"])
def test_code_that_changes(form: str, tmp_path: Path) -> None:
    check(*run([build("jit", tmp_path, "-static")], tmp_path, 0, **FORMS[form]))


@pytest.mark.parametrize("compressed", [True, False])
def test_threads(compressed: bool, tmp_path: Path) -> None:
    recording, truth = run([build("threads", tmp_path)], tmp_path, 0, return_compression=compressed)
    assert recording.streams == 4
    trace = check(recording, truth)
    assert len(np.unique(trace.branches(columns=["tid"])["tid"])) == 4


def test_children_have_their_own_streams_and_spaces(tmp_path: Path) -> None:
    recording, truth = run([build("forks", tmp_path, "-static")], tmp_path, 3)
    assert recording.streams == 6  # the parent, three children, one before its exec and after it
    trace = check(recording, truth)
    assert len(np.unique(trace.branches(columns=["space"])["space"])) == 6


def test_program_that_is_killed(tmp_path: Path) -> None:
    check(*run([build("killed", tmp_path, "-static")], tmp_path, 128 + 11))


@pytest.mark.parametrize("compressed", [True, False])
def test_32_bit(compressed: bool, tmp_path: Path) -> None:
    program = build("small32", tmp_path, "-m32", "-static")
    trace = check(*run([program], tmp_path, 0, return_compression=compressed))
    assert set(trace.instructions(columns=["mode"])["mode"]) == {32}


def test_names_without_the_program(tmp_path: Path) -> None:
    program = build("branches", tmp_path, "-static")
    recording, _ = run([program], tmp_path, 0)
    program.unlink()
    trace = ptkit.open(recording)
    assert len(trace.errors) == 0
    assert len(trace.branches(symbol="deep")) > 100
