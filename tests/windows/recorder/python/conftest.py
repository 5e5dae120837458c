"""Python for Windows in the prefix that has the driver."""

from __future__ import annotations

from pathlib import Path

import pytest
from driven_python import DrivenPython, find_driven_python
from windows_recording import Recorder


@pytest.fixture(scope="session")
def python(recorder: Recorder) -> DrivenPython:
    """The interpreter with the script that records; the driver is loaded."""
    return find_driven_python(recorder.wine, Path(__file__).resolve().parent / "record_in_wine.py")
