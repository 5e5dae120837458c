"""Recording in the emulator: control, the command line, bad cases."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rounds import entries, needs_emulator, opened, record
from waiting import runs_on, settles, wait_for
from warned import of_code

import ptkit

pytestmark = needs_emulator


def test_emulator_records_the_whole_program(rounds: Path, tmp_path: Path) -> None:
    trace = record([rounds, "10"], tmp_path)
    recording = trace.recording
    assert recording is not None
    assert entries(trace) == {
        "leaf": 30, "other": 10, "work": 10, "begin": 1, "end": 1, "handler": 0, "main": 1,
    }  # fmt: skip
    assert recording.backend == "emulator"
    assert len(trace.instructions(columns=["ip"])) == recording.instructions
    assert len(trace.branches(columns=["kind"])) == recording.branches
    assert recording.bundle_bytes == recording.path.stat().st_size
    assert recording.trace_bytes == trace.info.bytes
    assert not recording.interrupted
    assert not recording.limited


def test_max_instructions_ends_the_recording(rounds: Path, tmp_path: Path) -> None:
    trace = record([rounds, "100000"], tmp_path, max_instructions=50_000)
    assert trace.recording is not None
    assert trace.recording.limited
    assert 50_000 <= trace.recording.instructions < 60_000
    assert len(trace.instructions(columns=["ip"])) == trace.recording.instructions


# ---- control


class Feed:
    """The program's standard input: a pipe that this process has instead of its own."""

    def __init__(self) -> None:
        read, self._write = os.pipe()
        self._saved = os.dup(0)
        os.dup2(read, 0)
        os.close(read)

    def line(self) -> None:
        os.write(self._write, b"\n")

    def close(self) -> None:
        os.dup2(self._saved, 0)
        os.close(self._write)
        os.close(self._saved)


@pytest.fixture
def feed() -> Iterator[Feed]:
    """A standard input that is written to here."""
    made = Feed()
    yield made
    made.close()


def test_recorder_pid_is_the_programs(rounds: Path, tmp_path: Path, feed: Feed) -> None:
    with ptkit.Recorder(
        [rounds, "10", "-1", "wait"], tmp_path / "x.ptk", backend="emulator", quiet=True
    ) as recorder:
        assert recorder.pid is not None
        os.kill(recorder.pid, 0)
        feed.line()
    assert recorder.recording.exit_status == 5
    assert {stream.pid for stream in recorder.trace.streams} == {recorder.pid}
    assert entries(recorder.trace)["work"] == 10


def test_pause_and_resume(rounds: Path, tmp_path: Path) -> None:
    with ptkit.Recorder([rounds, "0"], tmp_path / "x.ptk", backend="emulator", quiet=True) as recorder:
        runs_on(recorder, 1_000_000)
        recorder.pause()
        paused = settles(recorder)
        recorder.resume()
        runs_on(recorder, 1_000_000)
        assert recorder.progress.instructions > paused
        recorder.stop()
    assert recorder.recording.interrupted
    assert recorder.recording.exit_status == 5
    assert len(recorder.trace.errors) == 0
    assert entries(recorder.trace)["end"] <= 1


def test_detach_lets_the_program_run_on(rounds: Path, tmp_path: Path, feed: Feed) -> None:
    with ptkit.Recorder(
        [rounds, "10", "-1", "wait"], tmp_path / "x.ptk", backend="emulator", quiet=True
    ) as recorder:
        settles(recorder)  # it waits for the line
        recorder.detach()
        time.sleep(0.2)  # nothing says when the emulator has stopped tracing
        feed.line()
    assert recorder.recording.exit_status == 5
    assert recorder.recording.instructions > 1000
    assert entries(recorder.trace)["work"] == 0


# ---- the command line


def _run(*words: Any, **more: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "ptkit", "record", *map(str, words)],
        capture_output=True,
        text=True,
        timeout=60,
        **more,
    )


def test_input_output_and_status_pass_through(tmp_path: Path) -> None:
    out = tmp_path / "out.ptk"
    done = _run("-o", out, "--", "sh", "-c", "read x; echo got $x; echo bad >&2; exit 9", input="word\n")
    assert (done.returncode, done.stdout) == (9, "got word\n")
    lines = done.stderr.splitlines()
    assert lines[0] == "bad"
    assert lines[1].startswith(f"ptkit: {out}: ")
    assert " branches, 1 stream, " in lines[1]
    assert " s (emulated: compare instructions, not durations; `ptkit doctor` reports " in lines[1]
    assert "durations:     emulated: compare instructions, not durations" in str(ptkit.open(out).info)
    assert len(lines) == 2
    done = _run("--json", "-o", out, "--", "sh", "-c", "kill -TERM $$")
    report = json.loads(done.stderr)
    assert done.returncode == report["exit_status"] == 128 + signal.SIGTERM
    assert report["backend"] == "emulator"
    assert "Intel PT" in report["reason"]


def _wait_for(recording: Path, size: int = 1 << 18) -> None:
    """Return when so many bytes were recorded."""
    assert wait_for(lambda: recording.exists() and recording.stat().st_size >= size)


def test_ctrl_c_ends_and_keeps(rounds: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.ptk"
    process = subprocess.Popen(
        [sys.executable, "-m", "ptkit", "record", "-o", out, "--", rounds, "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    _wait_for(out)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 5  # the program's own way to end
    assert int(stdout.split()[0]) > 100
    assert " s, interrupted (emulated" in stderr
    trace = ptkit.open(out)
    assert len(trace.errors) == 0
    # How the program ended may come after the recording's end.
    assert entries(trace)["begin"] == 1
    assert entries(trace)["work"] > 100


def test_killing_the_recorder_leaves_a_bundle(
    rounds: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out.ptk"
    (tmp_path / "t").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "t"))
    process = subprocess.Popen(
        [sys.executable, "-m", "ptkit", "record", "-o", out, "--", rounds, "0"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    _wait_for(out, 4 << 20)
    process.kill()
    process.wait()
    try:
        trace, _ = opened(out)
        assert of_code(trace.info.warnings, "RECORDING_UNFINISHED")
        part = next(trace.iter_branches(rows=1_000_000))
        assert len(part) == 1_000_000
        assert part.errors is None or len(part.errors) == 0
    finally:
        os.killpg(process.pid, signal.SIGINT)  # the program, which runs on
    # No process is left that would remove the socket between program and recorder.
    assert [path.name for path in (tmp_path / "t").glob("*/*")] == ["socket"]


def _small_disk() -> list[str]:
    """Words that run a shell command in $1 with a disk of 300 KiB, which ends with it, at $0."""
    words = ["unshare", "-rm", "sh", "-c", 'mount -t tmpfs -o size=300k none "$0" && sh -c "$1"']
    if shutil.which("unshare") is None or subprocess.run([*words, "/mnt", ":"], check=False).returncode:
        pytest.skip("no file system can be mounted here (unshare -rm)")
    return words


def test_full_disk_keeps_what_was_written(rounds: Path, tmp_path: Path) -> None:
    words = _small_disk()
    disk, kept = tmp_path / "disk", tmp_path / "kept.ptk"
    disk.mkdir()
    record = f"{sys.executable} -m ptkit record -o {disk}/out.ptk --no-return-compression"
    command = f"{record} -- {rounds} 6000000; echo status $?; cp {disk}/out.ptk {kept}"
    done = subprocess.run([*words, disk, command], capture_output=True, text=True, timeout=60, check=True)
    assert "No space left on device" in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout.splitlines()[0] == "6000000 rounds"
    assert re.search("status [25]", done.stdout)
    trace, warned = opened(kept)
    assert "disk was full" in warned or "No space left" in warned
    assert trace.info.bytes > 100_000
    # The code that it needs was written before.
    assert sum(map(len, trace.iter_branches(rows=1_000_000))) > 100_000
    assert all(trace.errors["offset"] + 16 > trace.info.bytes), "only the last packet may be cut"


@pytest.mark.parametrize(
    ("output", "says"),
    [
        ("no/such/folder/x.ptk", "cannot create"),
        (".", "is a folder"),
        ("/dev/full", "is a device"),
    ],
)
def test_an_output_that_cannot_be_written(output: str, says: str, tmp_path: Path) -> None:
    done = _run("-o", output, "--", "true", cwd=tmp_path)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith("ptkit record: error: ")
    assert says in line


def test_redact_leaves_out_paths_and_arguments(rounds: Path, tmp_path: Path) -> None:
    folder = tmp_path / "a-secret-folder"
    folder.mkdir()
    program = folder / "secret-program"
    shutil.copy(rounds, program)
    for redact in (False, True):
        out = tmp_path / f"{redact}.ptk"
        words = [program, "3", "-1", "secret-argument"]
        trace = ptkit.record(words, output=out, backend="emulator", quiet=True, redact=redact)
        found = json.dumps(
            [list(trace.opened.bundle.files), list(trace.opened.bundle.threads), str(trace.info)]
        )
        assert ("secret" in found) != redact
        assert (b"secret" in out.read_bytes()) <= (not redact)
        assert len(trace.errors) == 0
        assert len(trace.branches()) > 100
