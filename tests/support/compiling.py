"""Builds tests/programs."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).resolve().parents[1] / "programs"
COMPILERS = {
    ".c": os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc") or shutil.which("clang"),
    ".cpp": os.environ.get("CXX") or shutil.which("c++") or shutil.which("g++") or shutil.which("clang++"),
}
COMPILER = COMPILERS[".c"]


def build(name: str, folder: Path, *flags: str) -> Path:
    """Compile tests/programs/NAME.c or NAME.cpp; `-static` makes a short start."""
    source = next(PROGRAMS.glob(f"{name}.c*"))
    compiler = COMPILERS[source.suffix]
    if compiler is None:
        pytest.skip(f"no compiler for {source.name}: install gcc and g++, or set CC and CXX")
    program = folder / name
    command = [compiler, "-O1", "-pthread", *flags, "-o", str(program), str(source)]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        pytest.skip(f"cannot be built here: {' '.join(command)}: {result.stderr.strip()[-300:]}")
    return program
