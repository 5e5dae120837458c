"""Fixtures that the modules of this folder share."""

from __future__ import annotations

import os

import pytest
from compiling import COMPILER
from debian import Missing
from kernels import Kernel, find_kernel


@pytest.fixture(scope="session")
def kernel() -> Kernel:
    """Debian's kernel; skips where it cannot be downloaded."""
    if COMPILER is None:
        pytest.skip("no compiler for .c files: install gcc and g++, or set CC and CXX")
    try:
        return find_kernel()
    except Missing as missing:
        if os.environ.get("PTKIT_EMULATED") == "1":
            raise
        pytest.skip(f"Debian's kernel and headers: {missing}")
