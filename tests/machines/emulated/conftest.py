"""The emulated machine, for those who ask for it."""

from __future__ import annotations

import os
import time
from collections.abc import Generator
from pathlib import Path

import pytest
from emulated_sets import clock_for
from guest_programs import compile_programs
from kernels import build_folder
from machine import CLOCK, Machine

# All runs of the machine have this clock, and a test that fails says which.
COMMIT = os.environ.get("PTKIT_EMULATED_COMMIT")
os.environ.setdefault(CLOCK, str(clock_for(COMMIT) if COMMIT else int(time.time())))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Function,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """How to have the machine's run again in which a test failed."""
    report = yield
    if report.failed and "machine" in item.fixturenames:
        report.sections.append(("emulated machine", f"{CLOCK}={os.environ[CLOCK]} executes the same again"))
    return report


@pytest.fixture(scope="session")
def machine() -> Machine:
    """The machine; skips where it is not asked for, as its tests take minutes."""
    if os.environ.get("PTKIT_EMULATED") != "1":
        pytest.skip("set PTKIT_EMULATED=1 to run the emulated machine (built once: three minutes, 800 MB)")
    return Machine(build_folder())


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """For files of runs."""
    return tmp_path_factory.mktemp("emulated")


@pytest.fixture(scope="session")
def programs(run_folder: Path) -> dict[str, Path]:
    """Programs of the guest by path."""
    return compile_programs(run_folder / "programs")
