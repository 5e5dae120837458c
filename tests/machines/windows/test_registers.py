"""The driver's accesses of registers, where these fault (kernel/windows/machine/msr.S)."""

from __future__ import annotations

from pathlib import Path

from mingw import compile_program
from wine import Wine

ROOT = Path(__file__).resolve().parents[3]


def test_a_register_access_that_faults_is_reported(wine: Wine) -> None:
    program = compile_program(
        wine.folder / "registers.exe",
        f"-I{ROOT / 'kernel' / 'windows'}",
        Path(__file__).parent / "registers" / "main.c",
        ROOT / "kernel" / "windows" / "machine" / "msr.S",
    )
    assert wine.run(program) == "-1000 -1000 123456789abcdef\n"
