"""Bundles of a recorder that was killed, and redacted bundles."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
from waiting import wait_for
from warned import of_code, trace_warnings

import ptkit
from ptkit import capture
from ptkit.cli.main import main

pytestmark = pytest.mark.skipif(
    not any(backend.name == "step" and backend.available for backend in capture.probe()),
    reason="stepping does not work on this machine",
)


def _record(output: Path, *words: str, **options: object) -> None:
    ptkit.Recorder(list(words), output, backend="step", quiet=True, **options).run()  # type: ignore[arg-type]


def test_a_killed_recorder_leaves_what_it_saved(tmp_path: Path, brief: str) -> None:
    output = tmp_path / "killed.ptk"
    command = [sys.executable, "-m", "ptkit", "record", "-q", "--backend", "step", "-o", str(output)]
    recorder = subprocess.Popen([*command, "--", brief, "loop", "1000000000"], start_new_session=True)
    try:
        assert wait_for(lambda: output.exists() and b"PTKCDATA" in output.read_bytes())
        recorder.kill()
        assert recorder.wait() == -signal.SIGKILL
    finally:
        os.killpg(recorder.pid, signal.SIGKILL)  # the program that it traced
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        trace = ptkit.open(output)
    assert trace_warnings(caught) == list(trace.info.warnings)
    (unfinished,) = of_code(trace.info.warnings, "RECORDING_UNFINISHED")
    assert unfinished.severity == "LOSS"
    assert re.fullmatch(r"20\d\d-.* UTC, [\d.]+ s after it began", unfinished.arguments[0])
    (running,) = of_code(trace.info.warnings, "PROGRAM_RUNNING")
    assert running.arguments == ("1", "1")
    assert "warning" in str(trace.info)
    assert trace.info.recording["backend"] == "step"
    assert "exit_status" not in trace.info.recording
    instructions = trace.instructions(columns=["ip"])
    assert len(instructions) > 100
    assert set(trace.errors["code"].tolist()) <= {ptkit.ErrorCode.TRUNCATED_PACKET}


def _secrets(folder: Path, program: str) -> list[bytes]:
    return [os.fsencode(folder.name), b"hunter2", os.fsencode(program), b"(brief)"]


def test_redacted_recording(tmp_path: Path, brief: str, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "redacted.ptk"
    _record(output, brief, "loop", "20", "hunter2", str(tmp_path), redact=True)
    trace = ptkit.open(output)
    assert trace.info.recording["redacted"]
    assert "command" not in trace.info.recording
    assert trace.info.recording["exit_status"] == 0
    assert "redacted" in str(trace.info)
    assert all(path.startswith(("file-", "[v")) for path, _ in trace.info.files)
    assert any(build_id for _, build_id in trace.info.files)
    assert len(trace.errors) == 0
    assert any(trace.symbolize(trace.branches(columns=["from_ip"])["from_ip"], offsets=False))
    assert main(["info", "--json", str(output)]) == 0
    text = capsys.readouterr().out.replace(str(tmp_path), "")
    for secret in _secrets(tmp_path, brief):
        assert os.fsdecode(secret) not in text
    assert json.loads(text)["recording"]["redacted"] is True


def test_redact_verb_keeps_trace_and_build_ids(
    tmp_path: Path, brief: str, capsys: pytest.CaptureFixture[str]
) -> None:
    plain, redacted = tmp_path / "plain.ptk", tmp_path / "redacted.ptk"
    _record(plain, brief, "loop", "20", "hunter2", str(tmp_path))
    assert main(["redact", str(plain), "-o", str(redacted)]) == 0
    assert "redacted.ptk" in capsys.readouterr().out
    before, after = ptkit.open(plain), ptkit.open(redacted)
    for secret in _secrets(tmp_path, brief):
        assert os.fsdecode(secret) in str(before.info)
    for secret in _secrets(tmp_path, brief):
        assert os.fsdecode(secret) not in str(after.info).replace(str(tmp_path), "")
    assert [build_id for _, build_id in before.info.files] == [build_id for _, build_id in after.info.files]
    ours, theirs = (one.instructions(columns=["ip", "tsc", "tid"]) for one in (before, after))
    for column in ("ip", "tsc", "tid"):
        assert (ours[column] == theirs[column]).all()
    ips = before.branches(columns=["from_ip"])["from_ip"]
    assert list(before.symbolize(ips)) == list(after.symbolize(ips))


def test_redact_says_what_is_wrong(tmp_path: Path, brief: str) -> None:
    path = tmp_path / "a.ptk"
    _record(path, brief)
    before = path.read_bytes()
    with pytest.raises(ptkit.ConfigError, match="is what is read"):
        ptkit.redact(path, tmp_path / "." / "a.ptk")
    with pytest.raises(ptkit.ConfigError, match="is no path"):
        ptkit.redact(path, "")
    with pytest.raises(ptkit.OpenError, match="cannot create"):
        ptkit.redact(path, tmp_path / "no" / "such.ptk")
    with pytest.raises(ptkit.MissingFileError):
        ptkit.redact(tmp_path / "missing", tmp_path / "b.ptk")
    assert path.read_bytes() == before


def test_gaps_say_how_many_bytes_are_missing(tmp_path: Path, loop: Any) -> None:
    path = tmp_path / "a.ptk"
    bundle = ptkit._core.Bundle()
    bundle.add_stream(loop.stream(200_000))  # more than a chunk of data, which has 1 MiB
    bundle.add_code(loop.BASE, loop.CODE)
    ptkit._core.save_bundle(bundle, os.fsencode(path))
    data = bytearray(path.read_bytes())
    chunk = data.index(b"PTKCDATA")
    data[chunk + 60] ^= 1
    path.write_bytes(data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ptkit.PtkitWarning)
        trace = ptkit.open(path)
    lost = trace.info.streams[0].lost_bytes
    assert lost > 0
    assert int(trace.gaps["lost_bytes"].sum()) == lost
    assert set(trace.gaps.named("cause")) >= {"LOST"}
