"""Signals that end `ptkit record`: what was recorded is kept, and no temporary file is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from rounds import needs_emulator

import ptkit

pytestmark = needs_emulator
# Says when it runs, then runs on and on.
ENDLESS = ["sh", "-c", "echo ready; i=0; while :; do i=$((i + 1)); done"]


def _record(folder: Path, *, ignored: tuple[int, ...] = ()) -> subprocess.Popen[str]:
    def begin() -> None:
        # The tests may run under nohup or in the background of a script, with some of them ignored.
        for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN if number in ignored else signal.SIG_DFL)

    return subprocess.Popen(
        [sys.executable, "-m", "ptkit", "record", "--backend", "emulator", "-o", "out.ptk", "--", *ENDLESS],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"TMPDIR": str(folder / "tmp")},
        preexec_fn=begin,
    )


def _end(process: subprocess.Popen[str]) -> str:
    """Wait for the end; what it printed on standard error."""
    try:
        return process.communicate(timeout=120)[1]
    except subprocess.TimeoutExpired:
        process.kill()
        raise


@pytest.mark.parametrize(
    ("sent", "ignored"),
    [
        (signal.SIGTERM, ()),
        (signal.SIGHUP, ()),
        (signal.SIGINT, ()),
        # As in the background of a script.
        (signal.SIGINT, (signal.SIGINT, signal.SIGQUIT)),
        (signal.SIGTERM, (signal.SIGINT, signal.SIGQUIT)),
    ],
)
def test_a_signal_ends_the_recording(tmp_path: Path, sent: int, ignored: tuple[int, ...]) -> None:
    (tmp_path / "tmp").mkdir()
    with _record(tmp_path, ignored=ignored) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(sent)
        said = _end(process)
    assert ", interrupted (" in said
    assert process.returncode == 128 + signal.SIGINT
    assert list((tmp_path / "tmp").iterdir()) == []
    trace = ptkit.open(tmp_path / "out.ptk")
    assert len(trace.errors) == 0
    assert not trace.info.warnings


def test_a_hangup_that_is_ignored_stays_ignored(tmp_path: Path) -> None:
    (tmp_path / "tmp").mkdir()
    with _record(tmp_path, ignored=(signal.SIGHUP,)) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGHUP)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(timeout=0.5)
        process.send_signal(signal.SIGTERM)
        said = _end(process)
    assert ", interrupted (" in said
