"""Fixtures that the modules of this folder share."""

from __future__ import annotations

import os

import pytest
from compiling import COMPILER
from kernels import Kernel, build_folder, debian_kernel


@pytest.fixture(scope="session")
def kernel() -> Kernel:
    """Debian's kernel; skips where it is not asked for, as machines with it take minutes."""
    if os.environ.get("PTKIT_EMULATED") != "1":
        pytest.skip("set PTKIT_EMULATED=1 to run Debian's kernel in a machine (80 MB once)")
    if COMPILER is None:
        pytest.skip("no compiler for .c files: install gcc and g++, or set CC and CXX")
    return debian_kernel(build_folder())
