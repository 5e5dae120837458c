"""Recordings of tests/golden/recordings, opened with their code."""

from __future__ import annotations

import lzma
import warnings
from pathlib import Path

from reduced import unpack

import ptkit

FOLDER = Path(__file__).resolve().parents[2] / "golden" / "recordings"


def open_recording(name: str, folder: Path) -> ptkit.Trace:
    """A recording of perf, of which the file is written to `folder`."""
    path = folder / f"{name}.perf.data"
    path.write_bytes(lzma.decompress((FOLDER / f"{name}.perf.data.xz").read_bytes()))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ptkit.PtkitWarning)  # files of that machine are missing
        return ptkit.open(path, images=[unpack(FOLDER / f"{name}.npz").images])
