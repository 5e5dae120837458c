"""Bundles whose recorder was killed, and bundles that are to be shared."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import pytest

import ptkit
from ptkit import capture
from ptkit.cli.main import main

pytestmark = pytest.mark.skipif(
    not any(backend.name == "step" and backend.available for backend in capture.probe()),
    reason="stepping does not work on this machine",
)


def _record(output: Path, *words: str, **options: object) -> None:
    capture.record(list(words), output, backend="step", quiet=True, **options)  # type: ignore[arg-type]


def test_a_killed_recorder_leaves_what_it_saved(tmp_path: Path) -> None:
    output = tmp_path / "killed.ptk"
    command = [sys.executable, "-m", "ptkit", "record", "-q", "--backend", "step", "-o", str(output)]
    recorder = subprocess.Popen([*command, "--", "sh", "-c", "while :; do :; done"], start_new_session=True)
    try:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and b"PTKCDATA" not in (
            output.read_bytes() if output.exists() else b""
        ):
            time.sleep(0.1)
        recorder.kill()
        assert recorder.wait() == -signal.SIGKILL
    finally:
        os.killpg(recorder.pid, signal.SIGKILL)  # the program that it traced
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        trace = ptkit.open(output)
    said = "\n".join(trace.info.warnings)
    assert [str(warning.message) for warning in caught] == list(trace.info.warnings)
    assert "the recorder was killed, its disk was full, or the file was cut" in said
    assert "what it had when it was last saved is there (at 20" in said
    assert " s after it began)" in said
    assert "the program was still running when the recording ended (1 of 1 thread)" in said
    assert "warning" in str(trace.info)
    assert trace.info.recording["backend"] == "step"
    assert "exit_status" not in trace.info.recording
    instructions = trace.instructions(columns=["ip"])
    assert len(instructions) > 100
    assert set(trace.errors["code"].tolist()) <= {ptkit.ErrorCode.TRUNCATED_PACKET}


def _secrets(folder: Path) -> list[bytes]:
    return [os.fsencode(folder.name), b"hunter2", b"/bin/", b"/lib", b"(sh)"]


def test_redacted_recording(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "redacted.ptk"
    _record(output, "sh", "-c", f": hunter2 {tmp_path}", redact=True)
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
    for secret in _secrets(tmp_path):
        assert os.fsdecode(secret) not in text
    assert json.loads(text)["recording"]["redacted"] is True


def test_redacting_what_exists(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plain, redacted = tmp_path / "plain.ptk", tmp_path / "redacted.ptk"
    _record(plain, "sh", "-c", f": hunter2 {tmp_path}")
    assert main(["redact", str(plain), "-o", str(redacted)]) == 0
    assert "redacted.ptk" in capsys.readouterr().out
    before, after = ptkit.open(plain), ptkit.open(redacted)
    assert "hunter2" in str(before.info)
    for secret in _secrets(tmp_path):
        assert os.fsdecode(secret) not in str(after.info).replace(str(tmp_path), "")
    assert [build_id for _, build_id in before.info.files] == [build_id for _, build_id in after.info.files]
    ours, theirs = (one.instructions(columns=["ip", "tsc", "tid"]) for one in (before, after))
    for column in ("ip", "tsc", "tid"):
        assert (ours[column] == theirs[column]).all()
    ips = before.branches(columns=["from_ip"])["from_ip"]
    assert list(before.symbolize(ips)) == list(after.symbolize(ips))


def test_redact_says_what_is_wrong(tmp_path: Path) -> None:
    path = tmp_path / "a.ptk"
    _record(path, "true")
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


def test_gaps_say_how_many_bytes_are_missing(tmp_path: Path) -> None:
    path = tmp_path / "a.ptk"
    _record(path, "sh", "-c", "for i in 1 2 3 4 5 6 7 8; do :; done", psb_period=2048)
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
