"""Python for Windows in the prefix that has the driver."""

from __future__ import annotations

from pathlib import Path

import pytest
from windows_python import WindowsPython, find_windows_python
from wine import Wine


@pytest.fixture(scope="session")
def windows_python(driven_wine: Wine) -> WindowsPython:
    return find_windows_python(driven_wine)


@pytest.fixture(scope="session")
def script() -> Path:
    """The script that records in Wine."""
    return Path(__file__).resolve().parent / "record_in_wine.py"
