"""Builds tests/programs."""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).resolve().parents[2] / "programs"
COMPILERS = {
    ".c": os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc") or shutil.which("clang"),
    ".cpp": os.environ.get("CXX") or shutil.which("c++") or shutil.which("g++") or shutil.which("clang++"),
}
COMPILER = COMPILERS[".c"]


def build(name: str, folder: Path, *flags: str) -> Path:
    """Compile NAME.c or NAME.cpp of a sub-folder of tests/programs; `-static` makes a short start."""
    source = next(PROGRAMS.rglob(f"{name}.c*"))
    return compiled(folder / source.stem, "-O1", "-pthread", *flags, source)


def compiled(program: Path, *arguments: str | Path) -> Path:
    """Compile and link `program`; `arguments` are flags and source files.

    Only a missing compiler (or the missing C library of 32-bit programs) skips the test; a source that does
    not compile fails it.
    """
    suffix = ".cpp" if any(str(argument).endswith(".cpp") for argument in arguments) else ".c"
    compiler = COMPILERS[suffix]
    if compiler is None:
        pytest.skip(f"no compiler for {suffix} files: install gcc and g++, or set CC and CXX")
    if "-m32" in arguments and not _has_32_bit_library(compiler):
        pytest.skip("no C library of 32-bit programs: install gcc-multilib")
    _run([compiler, *map(str, arguments), "-o", str(program)])
    return program


def compiled_by(tool: str, name: str, folder: Path, *arguments: str) -> Path:
    """Compile NAME of a sub-folder of tests/programs with `go build` or the like, where that is installed."""
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is not installed")
    source = next(PROGRAMS.rglob(name))
    program = folder / source.stem
    _run([tool, *arguments, "-o", str(program), str(source)])
    return program


def line_with(source: Path, text: str) -> int:
    """Number of the one line of a source file that has a text."""
    [number] = [number for number, one in enumerate(source.read_text().splitlines(), 1) if text in one]
    return number


def _run(command: list[str]) -> None:
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        reason = result.stderr.strip()[-1000:]
        pytest.fail(f"does not compile: {' '.join(command)}: {reason}", pytrace=False)


@cache
def _has_32_bit_library(compiler: str) -> bool:
    command = [compiler, "-m32", "-x", "c", "-", "-o", os.devnull]
    # Without gcc-multilib there may be a library, and no headers of the kernel.
    source = b"#include <asm/unistd.h>\nint main(void) { return 0; }"
    return subprocess.run(command, input=source, capture_output=True).returncode == 0
