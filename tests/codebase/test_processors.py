"""Tests that ask CPUID pass on other processors than this one: they run once more in qemu-x86_64.

With `-cpu` it has the CPUID leaves of a processor, and refuses instructions that this one lacks.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

QEMU = shutil.which("qemu-x86_64")
ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("PTKIT_BUILD", ROOT / "build" / "test"))
# AMD, leaves up to 0DH, with AVX2; Intel, leaves up to 0BH, without AVX; the same with leaf 14H, of zeros.
PROCESSORS = ["EPYC", "Nehalem", "Nehalem,level=0x15"]
# Facts that they share: the processor's leaves, instruction sets, and kernels chosen by them.
PROGRAMS = {"test_trace_unit": "*", "test_base": "Isa.*", "test_packet": "*Counts.OfEveryTruncation*"}
PYTHON = [
    "tests/python/selftest/test_selftest_session.py",
    "tests/python/msr/test_msr.py::test_cpuid_of_this_processor_is_read",
]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(QEMU is None, reason="no qemu-x86_64 (apt-get install qemu-user)"),
]


def run(processor: str, *command: str | Path) -> str:
    """The output of a program, which has to end with 0."""
    done = subprocess.run(
        [str(QEMU), "-cpu", processor, *map(str, command)],
        capture_output=True, text=True, cwd=ROOT, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    return done.stdout


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("processor", PROCESSORS)
def test_programs_pass(processor: str, program: str) -> None:
    path = BUILD / "tests" / program
    if not path.exists():
        pytest.skip(f"{path} is not built (set PTKIT_BUILD to a build directory with PTKIT_TESTS=ON)")
    assert "PASSED" in run(processor, path, f"--gtest_filter={PROGRAMS[program]}")


# Python takes long to start there. With leaf 14H the tests run on processors that have it.
@pytest.mark.parametrize("processor", PROCESSORS[:2])
def test_python_passes(processor: str) -> None:
    said = run(
        processor, sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:cacheprovider", *PYTHON
    )
    assert " passed" in said
    assert "failed" not in said
