"""What `ptkit instructions` prints of an instruction, and which events stand between them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from small_elf import elf
from small_pe import pe

from ptkit.cli import main

CPU = ["--processor", "6/142/9"]


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    assert main(["instructions", *words]) == 0
    return capsys.readouterr().out.splitlines()


@pytest.fixture
def stream(tmp_path: Path, loop: Any) -> str:
    """Ten rounds of the loop program with a PSB+ before every fifth."""
    path = tmp_path / "raw.pt"
    path.write_bytes(loop.stream(10, psb_every=5))
    return str(path)


def test_targets_of_branches_have_names(
    stream: str, loop: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    image = tmp_path / "loop.out"
    image.write_bytes(elf(loop.CODE, loop.BASE, "again"))
    lines = printed(capsys, stream, "--image", str(image), *CPU, "--no-events", "--limit", "2")
    assert lines == [
        f"{loop.BASE:016x}  {'dec ecx':<44} again",
        f"{loop.JNZ:016x}  {'jnz 0x1000 <again>':<44} again+0x2",
    ]


def test_the_rva_in_its_file_where_there_is_no_symbol(
    stream: str, loop: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    image = tmp_path / "driver.sys"
    image.write_bytes(pe(loop.CODE, 0))
    words = [stream, "--image", str(image), *CPU, "--no-events", "--ip", hex(loop.JNZ), "--limit", "1"]
    disassembly = "jnz 0x1000 <[driver.sys]+0x1000>"
    assert printed(capsys, *words) == [f"{loop.JNZ:016x}  {disassembly:<44} [driver.sys]+0x1002"]
    disassembly = "jnz 0x1000 <[driver.sys]+0x200>"
    assert printed(capsys, *words, "--file-offsets") == [
        f"{loop.JNZ:016x}  {disassembly:<44} [driver.sys]+0x202"
    ]


def test_bytes_of_instructions(
    stream: str, loop: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = tmp_path / "code.bin"
    code.write_bytes(loop.CODE)
    words = [stream, "--code", f"{code}@{loop.BASE:#x}", *CPU, "--no-events", "--limit", "2", "--raw"]
    assert printed(capsys, *words) == [
        f"{loop.BASE:016x}  {'ff c9':<24} dec ecx",
        f"{loop.JNZ:016x}  {'75 fc':<24} jnz 0x1000",
    ]
    _, first, second = (json.loads(line) for line in printed(capsys, *words, "--json"))
    assert (first["bytes"], first["disassembly"]) == ("ffc9", "dec ecx")
    assert (second["bytes"], second["disassembly"]) == ("75fc", "jnz 0x1000")
    with pytest.raises(SystemExit):
        main(["instructions", stream, "--raw", "--no-inst"])


def test_status_of_psb_is_left_out(
    stream: str, loop: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = tmp_path / "code.bin"
    code.write_bytes(loop.CODE)
    words = [stream, "--code", f"{code}@{loop.BASE:#x}", *CPU]

    def events(*more: str) -> list[str]:
        return [line for line in printed(capsys, *words, *more) if line.startswith("[")]

    def flags(*more: str) -> list[list[str]]:
        rows = [json.loads(line) for line in printed(capsys, *words, "--json", *more)]
        return [row["flags"] for row in rows if row["table"] == "events"]

    assert events() == ["[enabled, ip: 0000000000001000]"]
    assert len(events("--status")) > len(events())
    assert not any("status" in row for row in flags())
    assert any("status" in row for row in flags("--status"))
    assert len(flags("--status")) == len(events("--status"))
