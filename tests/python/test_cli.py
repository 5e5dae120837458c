"""Every verb on streams whose content is known, its JSON form, and what it says of bad input."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ptkit.cli import main

# PSB, PSBEND, TIP.PGE to 0x1000, TNT (taken, not taken), TIP.PGD without IP.
STREAM = bytes.fromhex("0282" * 8 + "0223" + "7100100000000000"[:14] + "0a" + "01")
# 1000: jz 1004; 1002: nop; nop; 1004: jz 1000 ; 1006: jmp rax
CODE = bytes.fromhex("7402" + "9090" + "74fa" + "ffe0")
VERBS = ("record", "info", "packets", "branches", "instructions", "verify", "doctor")


@pytest.fixture
def stream(tmp_path: Path) -> list[str]:
    """Arguments that open the stream with its code."""
    path = tmp_path / "raw.pt"
    path.write_bytes(STREAM)
    code = tmp_path / "code.bin"
    code.write_bytes(CODE)
    return [str(path), "--code", f"{code}@0x1000", "--cpu", "6/142/9"]


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    status = main(list(arguments))
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def test_packets_are_those_of_ptdump(stream: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, "packets", *stream)
    assert status == 0
    assert [line.split() for line in out.splitlines()] == [
        ["0000000000000000", "psb"],
        ["0000000000000010", "psbend"],
        ["0000000000000012", "tip.pge", "3:", "0000000000001000"],
        ["0000000000000019", "tnt.8", ".!"],
        ["000000000000001a", "tip.pgd", "0:", "????????????????"],
    ]


def test_packets_as_json(stream: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "packets", "--json", *stream)
    rows = [json.loads(line) for line in out.splitlines()]
    assert [row["kind"] for row in rows] == ["PSB", "PSBEND", "TIP_PGE", "TNT_8", "TIP_PGD"]
    assert rows[2]["ip"] == 0x1000


def test_branches(stream: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "branches", *stream)
    assert [line.split()[1:4] for line in out.splitlines()][:2] == [
        ["0000000000001000", "--", "0000000000001002"],
        ["0000000000001004", "=>", "0000000000001000"],
    ]
    _, taken, _ = run(capsys, "branches", "--taken", *stream)
    assert "--" not in taken
    assert "=>" in taken


def test_instructions_have_events_at_their_place(
    stream: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    _, out, _ = run(capsys, "instructions", *stream)
    lines = out.splitlines()
    ips = [line.split()[0] for line in lines if not line.startswith("[")]
    assert ips[:4] == ["0000000000001000", "0000000000001002", "0000000000001003", "0000000000001004"]
    assert lines.index("[enabled, ip: 0000000000001000]") < lines.index(
        next(line for line in lines if not line.startswith("["))
    )
    assert lines[-1].startswith("[disabled")
    assert "jz 0x1004" in out


def test_limit(stream: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "instructions", "--no-events", "--no-inst", "--limit", "3", *stream)
    assert out.split() == ["0000000000001000", "0000000000001002", "0000000000001003"]


def test_missing_code_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "raw.pt"
    path.write_bytes(STREAM)
    status, out, err = run(capsys, "instructions", "--cpu", "6/142/9", str(path))
    assert status == 0
    assert "[error: no code bytes are known at this address" in out
    assert "1 errors" in err


def test_info(stream: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "info", "--decode", "--json", *stream)
    info = json.loads(out)
    assert info["bytes"] == len(STREAM)
    assert info["counts"]["branches"] >= 2


def test_doctor(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, "doctor", "--json")
    assert status == 0
    report = json.loads(out)
    assert "ptkit" in report["engines"]
    assert "step" in [backend["name"] for backend in report["backends"]]
    for backend in report["backends"]:
        assert backend["available"] or backend["remedy"]
    assert run(capsys, "doctor")[0] == 0


@pytest.mark.parametrize("verb", VERBS)
def test_help_has_examples(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_info:
        main([verb, "--help"])
    assert exit_info.value.code == 0
    out = capsys.readouterr().out
    assert f"ptkit {verb}" in out.split("examples:")[1]
    assert "--json" in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["info", "no/such/file"], "no/such/file"),
        (["branches", "EMPTY"], "empty"),
        (["branches", "TEXT"], "PSB"),
        (["instructions", "STREAM", "--symbol", "mian"], "mian"),
        (["instructions", "STREAM", "--cpu", "pentium"], "pentium"),
        (["packets", "STREAM", "--stream", "7"], "7"),
        (["packets", "STREAM", "--format", "nonsense"], "nonsense"),
        (["record"], "no program"),
        (["record", "--", "no-such-program-anywhere"], "no-such-program-anywhere"),
        (["record", "--timing", "sundial", "--", "true"], "sundial"),
    ],
)
def test_errors_are_one_line_and_status_2(
    arguments: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    contents = {"EMPTY": b"", "TEXT": b"this is no trace\n" * 100, "STREAM": STREAM}
    for name, data in contents.items():
        (tmp_path / name).write_bytes(data)
    paths = [str(tmp_path / word) if word in contents else word for word in arguments]
    status, _, err = run(capsys, *paths)
    assert status == 2
    errors = [line for line in err.splitlines() if ": error: " in line]
    assert len(errors) == 1
    assert words in errors[0]


def test_misuse_is_status_2(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_info:
        main(["packets"])
    assert exit_info.value.code == 2
    assert "--help" in capsys.readouterr().err


def _start(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "ptkit", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    )


def test_a_closed_pipe_is_no_error(tmp_path: Path) -> None:
    path = tmp_path / "raw.pt"
    path.write_bytes(STREAM * 20000)
    process = _start("packets", "--cpu", "6/142/9", str(path))
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.wait(timeout=60) == 0
    assert process.stderr.read() == ""
    process.stderr.close()


def test_ctrl_c_ends_with_130(tmp_path: Path) -> None:
    path = tmp_path / "raw.pt"
    path.write_bytes(STREAM * 400000)
    process = _start("packets", "--cpu", "6/142/9", str(path))
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGINT)
    begin = time.monotonic()
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted" in err
    assert time.monotonic() - begin < 20
