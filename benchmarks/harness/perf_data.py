"""Traces as files that Linux perf reads."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path

_MAGIC = b"PERFILE2"


def _is_perf_data(trace: Path) -> bool:
    if trace.is_dir():
        return (trace / "kcore_dir").is_dir()
    with trace.open("rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC


@cache
def perf_data_of(trace: Path, build: Path) -> Path:
    """Return a file that perf can read: the file itself, or its export by ``ptkit export``, with code."""
    if _is_perf_data(trace):
        return trace
    path = build / "results" / "perf" / f"{trace.name}.data"
    path.parent.mkdir(parents=True, exist_ok=True)
    words = [sys.executable, "-m", "ptkit", "export", str(trace), "-o", str(path), "--with-code", "all"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)}: {done.stderr.strip()}")
    return path
