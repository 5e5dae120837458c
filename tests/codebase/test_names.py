"""Tests and what they share can be imported together: every module of them has a name of its own."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Modules that are imported by their bare names, in one process.
PATTERNS = ("tests/**/*.py", "benchmarks/*.py")
SHARED = {"conftest"}  # pytest tells these apart


def test_no_two_modules_have_the_same_name() -> None:
    names = [path.stem for pattern in PATTERNS for path in ROOT.glob(pattern)]
    assert len(names) > 80
    assert [name for name, count in Counter(names).items() if count > 1 and name not in SHARED] == []
