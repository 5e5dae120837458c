"""A bundle that ptkit-capture.exe wrote is decoded by Python for Windows as here."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from windows_recording import Recorder, wandering
from wine_python import WinePython, windows_path

pytestmark = pytest.mark.slow

TABLES = Path(__file__).resolve().parents[1] / "python" / "table_hashes.py"


def test_a_recording_has_equal_tables_in_windows(recorder: Recorder, windows_python: WinePython) -> None:
    bundle = recorder.record("python", wandering(recorder.image, 4000)) / "trace.ptk"
    there = windows_python.run(TABLES, windows_path(bundle), seconds=300)
    ours = subprocess.run([sys.executable, TABLES, bundle], capture_output=True, text=True, check=True)
    assert there == ours.stdout
    rows = {line.split()[1]: int(line.split()[2]) for line in there.splitlines()}
    assert rows["instructions"] > 4000
    assert rows["errors"] == 0
