"""Addresses on the command line: their forms, and decimal digits that were meant to be hexadecimal."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import pytest

from ptkit.cli import addresses, main

_ADDRESS = 0xFFFFF80312345678


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0x401000", 0x401000),
        ("fffff803`12345678", _ADDRESS),
        ("0xfffff803`12345678", _ADDRESS),
        ("00007ff6`12345678", 0x7FF612345678),
        ("0b11", 3),
        ("4098", 4098),
        ("18446744073709551615", 2**64 - 1),
    ],
)
def test_forms_of_addresses(text: str, value: int) -> None:
    assert addresses.address(text) == value


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("7ff612a0", "for a hexadecimal number write 0x7ff612a0"),
        ("00401000", "for a hexadecimal number write 0x00401000"),
        ("fffff803`1234", "write 0x401000, fffff803`12345678 or decimal digits"),
        ("main", "is not an address"),
        ("-1", "must be in [0, 2**64)"),
        ("0x10000000000000000", "must be in [0, 2**64)"),
    ],
)
def test_what_is_no_address(text: str, words: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError) as error_info:
        addresses.address(text)
    assert words in str(error_info.value)


def test_addresses_and_ranges() -> None:
    assert addresses.address_or_range("fffff803`12345678-fffff803`12345680") == (_ADDRESS, _ADDRESS + 8)
    assert addresses.address_or_range("fffff803`12345678") == _ADDRESS
    assert addresses.address_range("0x1000-0x1fff") == (0x1000, 0x1FFF)
    image = addresses.image_at("x.dll@00000001`40000000,cr3=00000001`001ad000,layout=memory")
    assert image == ("x.dll", 0x140000000, 0x1001AD000, "memory")
    assert addresses.list_at("a,b=c@d.map@0x1000") == ("a,b=c@d.map", 0x1000, None, None)
    assert addresses.code_at("x.bin@0x1000,cr3=0x2000") == ("x.bin", 0x1000, 0x2000, None)
    for wrong in ("x.bin", "x.bin@0x1000,layout=file", "x.bin@0x1000,pid=4"):
        with pytest.raises(argparse.ArgumentTypeError):
            addresses.code_at(wrong)


@pytest.fixture
def stream(loop: Any, tmp_path: Path) -> list[str]:
    path, code = tmp_path / "raw.pt", tmp_path / "code.bin"
    path.write_bytes(loop.stream(3))
    code.write_bytes(loop.CODE)
    return [str(path), "--processor", "6/142/9", "--code", f"{code}@"]


@pytest.mark.parametrize(
    ("where", "ip", "note"),
    [
        ("0x1000", "1002", "--ip: 1002 is decimal, 0x3ea: for a hexadecimal address write 0x1002"),
        ("0x1000", "401000", "--ip: 401000 is decimal, 0x61e68: for a hexadecimal address write 0x401000"),
        ("1000", "0x1002", "--code: 1000 is decimal, 0x3e8: for a hexadecimal address write 0x1000"),
        ("4096", "4098", ""),
        ("0x1000", "0x1002", ""),
        ("0x1000", "77", ""),
    ],
)
def test_decimal_digits_that_were_meant_to_be_hexadecimal(
    stream: list[str], where: str, ip: str, note: str, capsys: pytest.CaptureFixture[str]
) -> None:
    *words, code = stream
    assert main(["instructions", *words, code + where, "--no-events", "--ip", ip]) == 0
    notes = [line for line in capsys.readouterr().err.splitlines() if "is decimal" in line]
    assert notes == ([f"ptkit instructions: note: {note}"] if note else [])


def test_notes_of_info_and_of_plans(stream: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    *words, code = stream
    assert main(["info", *words, code + "1000"]) == 0
    assert capsys.readouterr().err.count("note: --code: 1000 is decimal, 0x3e8") == 1


def test_cr3_of_a_plan(capsys: pytest.CaptureFixture[str]) -> None:
    main(["msr", "plan", "--user", "--cr3", "40000000"])
    assert "note: --cr3: 40000000 is decimal, 0x2625a00: for a hexadecimal address" in capsys.readouterr().err
    main(["msr", "plan", "--user", "--cr3", "0x40000000"])
    assert "is decimal" not in capsys.readouterr().err
