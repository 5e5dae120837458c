"""Python for Windows in the prefix that has the driver."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from driven_python import DrivenPython
from windows_recording import Recorder
from wine_python import WinePython

HERE = Path(__file__).resolve().parent


@pytest.fixture(scope="session")
def python(recorder: Recorder, windows_python: WinePython) -> DrivenPython:
    """The interpreter with the script that records; the driver is loaded."""
    return DrivenPython(replace(windows_python, wine=recorder.wine), HERE / "record_in_wine.py")
