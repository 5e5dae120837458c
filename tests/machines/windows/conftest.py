"""Fixtures that the modules of this folder share."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from debian import Missing
from mingw import require_mingw
from windows_client import BUILD, build_recorder
from windows_driver import build_objects, build_shipped, build_with_model
from windows_python import BUILD as PYTHON_BUILD
from windows_python import interpreter
from wine import Wine, private_wine, require_wine
from wine_python import WinePython


@pytest.fixture(scope="session", autouse=True)
def asked_for() -> None:
    """Skips all of this folder unless it is asked for: each process of `make test` would build it."""
    if os.environ.get("PTKIT_WINDOWS") != "1":
        pytest.skip("set PTKIT_WINDOWS=1 to test the Windows driver (make windows-test)")


@pytest.fixture(scope="session")
def wine() -> Iterator[Wine]:
    """One prefix for all tests; skips where Wine or mingw-w64 is not installed."""
    require_wine()
    require_mingw()
    with private_wine() as prefix:
        yield prefix


@pytest.fixture(scope="session")
def model_driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The driver with the model of the processors and the shims."""
    require_mingw()
    return build_with_model(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="session")
def native_driver(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Object files of them for programs of Linux, under sanitizers."""
    require_mingw()
    return build_objects(tmp_path_factory.mktemp("native"))


@pytest.fixture(scope="session")
def shipped_driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """ptkit.sys as `make windows` makes it."""
    require_mingw()
    return build_shipped(tmp_path_factory.mktemp("shipped"))


@pytest.fixture(scope="session")
def recorder_program(wine: Wine) -> Path:
    """ptkit-capture.exe; the build stays for the next time."""
    try:
        return build_recorder(BUILD)
    except Missing as missing:
        pytest.fail(str(missing), pytrace=False)


@pytest.fixture(scope="session")
def windows_python(wine: Wine) -> WinePython:
    """CPython for Windows with ptkit; skips where it is not built."""
    site = PYTHON_BUILD / "site"
    if not (site / "ptkit").is_dir():
        pytest.skip("ptkit's package for Windows is not built (make windows-python)")
    return WinePython(wine, interpreter(PYTHON_BUILD) / "python.exe", site)
