"""A recording of tests/programs/branches/loops.c."""

from __future__ import annotations

from pathlib import Path

import pytest
from compiling import PROGRAMS, compiled

import ptkit


@pytest.fixture(scope="session")
def loops_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("loops")
    source = PROGRAMS / "branches" / "loops.c"
    program = compiled(folder / "loops", "-O0", "-g", "-static", "-Wl,--build-id", source)
    return ptkit.Recorder([str(program)], folder / "loops.ptk", backend="emulator", quiet=True).run().path


@pytest.fixture(scope="session")
def loops_trace(loops_path: Path) -> ptkit.Trace:
    return ptkit.open(loops_path)
