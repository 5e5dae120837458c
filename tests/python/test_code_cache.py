"""Decoded code that is kept from one process to the next: PTKIT_CACHE and `ptkit cache`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from compiling import compiled

from ptkit.cli.main import main

TEXT = 0x401000
SOURCE = """
    .globl _start
_start:
    .rept 3000
    mov %rsp, %rbp
    nop
    .endr
    jmp *%rax
"""
INSTRUCTIONS = 6001


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An ELF file with a build-id and enough code to be worth keeping."""
    folder = tmp_path_factory.mktemp("program")
    (folder / "long.s").write_text(SOURCE)
    options = ["-nostdlib", "-static", "-no-pie", "-Wl,--build-id=sha1", f"-Wl,-Ttext={TEXT:#x}"]
    return compiled(folder / "long", *options, folder / "long.s")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder of its own."""
    monkeypatch.setenv("PTKIT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "code"


@pytest.fixture
def decode(open_trace: Callable[..., Any], packets: Any, program: Path) -> Callable[[], tuple[bytes, int]]:
    """Decodes the program: the instruction pointers, and how many instructions were recalled."""

    def decoded() -> tuple[bytes, int]:
        begin = packets.PSB + packets.MODE_64 + packets.PSBEND + packets.pge(TEXT)
        trace = open_trace(begin + packets.tip(TEXT) + packets.TIP_PGD, images=[str(program)])
        ips = trace.instructions(threads=1)["ip"]
        assert len(ips) >= INSTRUCTIONS
        recalled = trace._session.recalled_instructions
        trace._session.save_code()
        return ips.tobytes(), recalled

    return decoded


def test_the_second_trace_recalls(decode: Any, folder: Path) -> None:
    first, recalled = decode()
    assert recalled == 0
    (kept,) = folder.iterdir()
    written = kept.stat().st_mtime_ns
    again, recalled = decode()
    assert again == first
    assert recalled >= INSTRUCTIONS
    assert kept.stat().st_mtime_ns == written  # nothing new


@pytest.mark.parametrize("damage", ["byte", "cut", "version", "empty"])
def test_damaged_files_are_written_anew(decode: Any, folder: Path, damage: str) -> None:
    first, _ = decode()
    (kept,) = folder.iterdir()
    good = kept.read_bytes()
    bad = {
        "byte": good[:40] + bytes([good[40] ^ 1]) + good[41:],
        "cut": good[: len(good) // 2],
        "version": good[:8] + b"\xff" + good[9:],
        "empty": b"",
    }[damage]
    kept.write_bytes(bad)
    again, recalled = decode()
    assert again == first
    assert recalled == 0
    assert kept.read_bytes() == good
    assert list(folder.iterdir()) == [kept]


def test_off(decode: Any, folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PTKIT_CACHE", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    decode()
    assert not folder.exists()
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_written_is_no_error(
    decode: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("PTKIT_CACHE", str(tmp_path / "file"))
    first, recalled = decode()
    assert decode() == (first, 0)
    assert recalled == 0


def test_processes_at_once(program: Path, packets: Any, folder: Path) -> None:
    data = (
        packets.PSB
        + packets.MODE_64
        + packets.PSBEND
        + packets.pge(TEXT)
        + packets.tip(TEXT)
        + packets.TIP_PGD
    )
    script = (
        "import sys, warnings, ptkit; warnings.simplefilter('ignore');"
        "t = ptkit.open(bytes.fromhex(sys.argv[1]), images=[sys.argv[2]]);"
        "print(len(t.instructions(threads=1))); t._session.save_code()"
    )
    command = [sys.executable, "-c", script, data.hex(), str(program)]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, env=os.environ) for _ in range(3)]
    outputs = [process.communicate()[0] for process in running]
    assert [process.returncode for process in running] == [0, 0, 0]
    assert len(set(outputs)) == 1
    assert [path.suffix for path in folder.iterdir()] == [".code"]


def test_the_verb(decode: Any, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def shown() -> dict[str, Any]:
        assert main(["cache", "--json"]) == 0
        answer: dict[str, Any] = json.loads(capsys.readouterr().out)
        return answer

    empty = shown()
    assert (empty["folder"], empty["files"], empty["size_bytes"]) == (str(folder), [], 0)
    decode()
    (kept,) = folder.iterdir()
    one = shown()
    assert one["size_bytes"] == kept.stat().st_size
    assert [(file["mode"], len(file["build_id"])) for file in one["files"]] == [("64", 40)]
    (folder / "left.code.abcdef").write_bytes(b"of a writer that died")
    assert main(["cache"]) == 0
    assert str(folder) in capsys.readouterr().out
    assert main(["cache", "--clear"]) == 0
    assert "removed 2 files" in capsys.readouterr().out
    assert not list(folder.iterdir())


def test_the_verb_where_nothing_is_kept(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PTKIT_CACHE", "")
    assert main(["cache"]) == 0
    assert "PTKIT_CACHE is empty" in capsys.readouterr().out
    assert main(["cache", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["folder"] is None
