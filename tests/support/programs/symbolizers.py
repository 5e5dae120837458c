"""Source lines and inlined functions as another symbolizer has them."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest

Chain = list[tuple[str, str, int]]


def reference_chains(program: Path, addresses: Iterable[int], *options: str) -> dict[int, Chain]:
    """Output of `llvm-symbolizer`: (raw function name, file, line), the innermost function first."""
    symbolizer = shutil.which("llvm-symbolizer")
    if symbolizer is None:
        pytest.skip("llvm-symbolizer is not installed (package llvm)")
    command = [symbolizer, f"--obj={program}", "--inlines", "--addresses", "--no-demangle", *options]
    given = "".join(f"{address:#x}\n" for address in addresses)
    answer = subprocess.run(command, input=given, capture_output=True, text=True, check=True).stdout
    return dict(_chain(block.splitlines()) for block in answer.strip().split("\n\n"))


def _chain(lines: list[str]) -> tuple[int, Chain]:
    """Of the lines ADDRESS, then FUNCTION and FILE:LINE:COLUMN in turns."""
    chain = []
    for function, location in zip(lines[1::2], lines[2::2], strict=True):
        file, line, _ = location.rsplit(":", 2)
        chain.append((function, file, int(line)))
    return int(lines[0], 16), chain


def demangled(names: Iterable[str]) -> dict[str, str]:
    """Raw names, demangled by `c++filt`."""
    distinct = sorted(set(names))
    if shutil.which("c++filt") is None:
        pytest.skip("c++filt is not installed (package binutils)")
    answer = subprocess.run(
        ["c++filt", "-i"], input="\n".join(distinct), capture_output=True, text=True, check=True
    )
    return dict(zip(distinct, answer.stdout.splitlines(), strict=True))
