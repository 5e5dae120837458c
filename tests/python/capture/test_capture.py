"""Recording by every back end that works here: arguments, exit status, interruption, the bundle."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import pytest

import ptkit
from ptkit import capture

WORKING = [one.name for one in capture.probe() if one.available]

pytestmark = pytest.mark.skipif(
    not WORKING,
    reason="no way of recording here: " + "; ".join(f"{one.name}: {one.missing}" for one in capture.probe()),
)


@pytest.fixture(params=WORKING)
def backend(request: pytest.FixtureRequest) -> str:
    """Each back end that works here."""
    return str(request.param)


def test_probe_says_what_is_missing() -> None:
    found = {one.name: one for one in capture.probe()}
    assert list(found) == ["perf", "driver", "emulator", "step"]
    for one in found.values():
        assert one.detail
        assert one.available or one.remedy
        assert one.available == (not one.missing)


def test_records_a_program(tmp_path: Path, backend: str, brief: str) -> None:
    seen: list[capture.Progress] = []
    recording = ptkit.Recorder([brief, "loop", "200"], tmp_path / "a.ptk", backend=backend).run(seen.append)
    assert recording.exit_status == 0
    assert (recording.backend, recording.reason) == (backend, "")
    assert recording.instructions > 1000
    assert recording.streams == 1
    assert os.fspath(recording) == str(tmp_path / "a.ptk")
    assert not recording.warnings
    counts = [one.instructions for one in seen]
    assert counts == sorted(counts)
    assert max(counts, default=0) <= recording.instructions
    trace = ptkit.open(recording)
    assert len(trace.errors) == 0
    assert len(trace.instructions()) == recording.instructions


def test_exit_status_is_the_programs(tmp_path: Path, backend: str, brief: str) -> None:
    assert ptkit.Recorder([brief, "exit", "7"], tmp_path / "a.ptk", backend=backend).run().exit_status == 7


def test_killed_program_leaves_a_bundle(tmp_path: Path, backend: str, brief: str) -> None:
    program = [brief, "signal", str(int(signal.SIGSEGV))]
    recording = ptkit.Recorder(program, tmp_path / "killed.ptk", backend=backend).run()
    assert recording.exit_status == 128 + signal.SIGSEGV
    assert len(ptkit.open(recording).errors) == 0


def test_output_passes_through(tmp_path: Path, backend: str, brief: str) -> None:
    code = (
        "import sys; import ptkit; "
        f"program = [{brief!r}, 'word']; "
        "ptkit.Recorder(program, sys.argv[1], backend=sys.argv[2], quiet=len(sys.argv) > 3).run()"
    )
    run = [sys.executable, "-c", code, str(tmp_path / "a.ptk"), backend]
    loud = subprocess.run(run, input="word\n", capture_output=True, text=True, timeout=100, check=True)
    assert loud.stdout == "got word\n"
    assert loud.stderr == "bad\n"
    quiet = subprocess.run(
        [*run, "quiet"], input="word\n", capture_output=True, text=True, timeout=100, check=True
    )
    assert quiet.stdout == ""
    assert quiet.stderr == "bad\n"


def test_limit_lets_the_program_run_on(tmp_path: Path, backend: str) -> None:
    mark = tmp_path / "mark"
    recording = ptkit.Recorder(
        ["sh", "-c", f"sleep 0.1; echo done > {mark}; exit 3"],
        tmp_path / "limited.ptk",
        backend=backend,
        max_instructions=5000,
    ).run()
    assert recording.limited
    assert 5000 <= recording.instructions < (5100 if backend == "step" else 10_000)
    assert recording.exit_status == 3
    assert mark.read_text() == "done\n"
    trace = ptkit.open(recording)
    assert len(trace.errors) == 0
    assert len(trace.instructions()) == recording.instructions


def test_interrupt_keeps_what_there_is(tmp_path: Path, backend: str) -> None:
    runs = threading.Event()

    def press() -> None:
        runs.wait(60)
        signal.raise_signal(signal.SIGINT)

    def progress(so_far: capture.Progress) -> None:
        if so_far.instructions > 1000:
            runs.set()

    presser = threading.Thread(target=press)
    presser.start()
    endless = ["sh", "-c", "while :; do :; done"]
    recording = ptkit.Recorder(endless, tmp_path / "endless.ptk", backend=backend).run(progress)
    presser.join()
    assert recording.interrupted
    assert recording.exit_status == 128 + signal.SIGINT
    trace = ptkit.open(recording)
    assert len(trace.errors) == 0
    assert sum(len(part) for part in trace.iter_instructions(reuse=True)) == recording.instructions


def test_other_children_are_left_alone(tmp_path: Path, backend: str) -> None:
    with subprocess.Popen(["sh", "-c", "exit 9"]) as other:
        ptkit.Recorder(["true"], tmp_path / "true.ptk", backend=backend, max_instructions=1000).run()
        assert other.wait() == 9


def test_use_errors_say_what_to_do(tmp_path: Path) -> None:
    out = tmp_path / "x.ptk"
    with pytest.raises(ptkit.ConfigError, match="no program 'no-such-program'"):
        ptkit.Recorder(["no-such-program"], out).run()
    with pytest.raises(ptkit.ConfigError, match="found nothing"):
        ptkit.Recorder([], out).run()
    with pytest.raises(ptkit.ConfigError, match="expected a list"):
        ptkit.Recorder("true", out).run()
    with pytest.raises(ptkit.ConfigError, match="timing: expected any of tsc, mtc, cyc, none, found 'utc'"):
        ptkit.Recorder(["true"], out, timing=["utc"]).run()
    for backend in WORKING:
        with pytest.raises(ptkit.ConfigError, match="power of two"):
            ptkit.Recorder(["true"], out, psb_period=5000, backend=backend).run()
        with pytest.raises(ptkit.OpenError, match="cannot create"):
            ptkit.Recorder(["true"], tmp_path / "no" / "such" / "folder.ptk", backend=backend).run()
    with pytest.raises(ptkit.ConfigError, match=r"mtc_period=16: .*\[0, 15\]"):
        ptkit.Recorder(["true"], out, mtc_period=16).run()
    with pytest.raises(ptkit.ConfigError, match="expected one of auto, perf, driver, emulator, step"):
        ptkit.Recorder(["true"], out, backend="magic").run()
    with pytest.raises(ptkit.UnsupportedError, match="driver"):
        ptkit.Recorder(["true"], out, backend="driver").run()


def _temporary_recordings() -> set[str]:
    return {path.name for path in Path(tempfile.gettempdir()).glob("ptkit-*.ptk")}


def test_a_failed_recording_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(ptkit.ConfigError, match="power of two"):
        ptkit.Recorder(["true"], psb_period=5000).run()
    assert not _temporary_recordings()

    def interrupt(progress: capture.Progress) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        ptkit.Recorder(["sleep", "1"]).run(interrupt)
    assert not _temporary_recordings()


def test_progress_must_be_a_function() -> None:
    with pytest.raises(ptkit.ConfigError, match="progress: expected a function"):
        ptkit.Recorder(["true"]).run(5)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"mtc_period": 1.5}, r"mtc_period=1.5: .*\[0, 15\]"),
        ({"cyc_threshold": 16}, "cyc_threshold=16: "),
        ({"psb_period": "4096"}, "psb_period='4096': "),
        ({"max_instructions": 10**30}, r"max_instructions=10+: .*2\*\*63"),
        ({"max_instructions": 0}, "max_instructions=0: "),
        ({"max_instructions": 1e3}, "max_instructions=1000.0: "),
        ({"timing": 5}, "timing: expected any of tsc, mtc, cyc, none, found 5"),
        ({"output": "a\0b"}, "output: .* has a NUL"),
        ({"output": 5}, "output: expected a path, found 5"),
        ({"quiet": "x"}, "quiet='x' must be True or False"),
    ],
)
def test_numbers_out_of_range(options: dict[str, Any], text: str) -> None:
    with pytest.raises(ptkit.ConfigError, match=text):
        ptkit.Recorder(["true"], **options).run()


def test_words_that_no_program_can_get() -> None:
    for argv in (["true\0", "x"], ["true", "a\0b"], ["true", 5], 5):
        with pytest.raises(ptkit.ConfigError, match="argv: "):
            ptkit.Recorder(argv).run()  # type: ignore[arg-type]
