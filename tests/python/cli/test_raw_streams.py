"""Raw streams on the command line: their settings, packets before the first PSB, standard input."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ptkit.cli import main

PATIENCE = 60
_NINE = bytes.fromhex("711093388506f80000")
_CALL_OUT = bytes.fromhex("e8 fb1f0000 90 90 ffe0")  # call 3000; nop; nop; jmp rax


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    status = main(words)
    captured = capsys.readouterr()
    return status, captured.out, captured.err


@pytest.fixture
def calls_out(packets: Any, tmp_path: Path) -> list[str]:
    """Arguments of a stream in which a direct call leaves the range of the filter."""
    header = packets.PSB + packets.MODE_64 + packets.PSBEND
    path, code = tmp_path / "raw.pt", tmp_path / "code.bin"
    path.write_bytes(
        header + packets.pge(0x1000) + packets.TIP_PGD + packets.pge(0x1005) + packets.tip(0x1000)
    )
    code.write_bytes(_CALL_OUT)
    return [str(path), "--code", f"{code}@0x1000", "--processor", "6/142/9"]


def test_ranges_and_rtit_ctl_of_a_raw_stream(
    calls_out: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, err = run(capsys, "branches", *calls_out, "--no-header", "--range", "0x1000-0x1fff")
    assert (status, err) == (0, "")
    assert out.splitlines()[0].split()[1:4] == [f"{0x1000:016x}", "=>", f"{0x3000:016x}"]
    assert "[error: no code at this address" in run(capsys, "branches", *calls_out)[1]
    settings = ["--range", "0x1000-0x1fff", "--stop-range", "0x5000-0x5fff", "--rtit-ctl", "0x2409"]
    info = json.loads(run(capsys, "info", *calls_out, *settings, "--json")[1])
    assert info["ranges"] == [
        {"kind": "filter", "first": "0x1000", "last": "0x1fff"},
        {"kind": "stop", "first": "0x5000", "last": "0x5fff"},
    ]
    assert info["rtit_ctl"] == "0x2409"


def test_five_ranges_are_one_line(calls_out: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = run(capsys, "branches", *calls_out, *(["--range", "0x1000-0x1fff"] * 5))
    assert (status, out) == (2, "")
    assert err == "ptkit branches: error: ranges: 5 of them; a processor has 4 at most\n"


def test_packets_without_a_psb(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "nine.bin"
    path.write_bytes(_NINE)
    status, out, _ = run(capsys, "packets", str(path), "--no-sync")
    assert status == 0
    assert [line.split() for line in out.splitlines()] == [
        [f"{0:016x}", "tip.pge", "3:", "fffff80685389310"],
        [f"{7:016x}", "pad"],
    ]
    status, _, err = run(capsys, "packets", str(path))
    assert status == 2
    assert "without a PSB packet in its first 64 KiB" in err


@pytest.mark.parametrize("verb", ["info", "packets", "branches", "instructions", "events", "edges", "verify"])
def test_dash_is_standard_input(loop: Any, tmp_path: Path, verb: str) -> None:
    code, path = tmp_path / "code.bin", tmp_path / "raw.pt"
    code.write_bytes(loop.CODE)
    path.write_bytes(loop.stream(5))
    options = ["--code", f"{code}@{loop.BASE:#x}", "--processor", "6/142/9"]
    options += ["--no-header"] if verb not in ("info", "verify") else []

    def output(source: str, data: bytes) -> bytes:
        command = [sys.executable, "-m", "ptkit", verb, source, *options]
        done = subprocess.run(command, input=data, capture_output=True, timeout=PATIENCE, check=False)
        assert (done.returncode, done.stderr) == (0, b"")
        return done.stdout

    piped = output("-", path.read_bytes()).replace(b"/dev/stdin", str(path).encode())
    assert piped == output(str(path), b"")
    assert piped


def test_standard_input_as_a_bundle(loop: Any, tmp_path: Path) -> None:
    def do(*words: str) -> subprocess.CompletedProcess[bytes]:
        command = [sys.executable, "-m", "ptkit", *words]
        return subprocess.run(
            command, input=loop.stream(5), capture_output=True, timeout=PATIENCE, check=False, cwd=tmp_path
        )

    assert do("save", "-", "-o", "saved.ptk").returncode == 0
    assert do("redact", "-", "-o", "redacted.ptk").returncode == 0
    assert do("index", "-", "-o", "raw.ptindex").returncode == 0
    assert {one.name for one in tmp_path.iterdir()} == {"saved.ptk", "redacted.ptk", "raw.ptindex"}
    done = do("index", "-")
    assert done.returncode == 2
    assert b"standard input has no path: give -o FILE" in done.stderr
    done = do("bench", "-")
    assert done.returncode == 2
    assert b"bench reads it several times: give a file" in done.stderr
