"""Which files `make lint` gives to clang-tidy."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = [f"src/flow/file{number}.cpp" for number in range(200)]


@pytest.fixture(scope="module")
def tool() -> Any:
    spec = importlib.util.spec_from_file_location("tidy_files", ROOT / "tools" / "tidy_files.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_changed_files_and_sources_of_changed_headers_are_checked(tool: Any) -> None:
    changed = {"src/flow/file3.cpp", "src/flow/file5.h", "docs/time.md"}
    for head in range(10):
        files = tool.chosen(SOURCES, changed, f"{head:08x}")
        assert {"src/flow/file3.cpp", "src/flow/file5.cpp"} <= set(files)
        assert files == [name for name in SOURCES if name in files]


def test_a_change_of_most_files_is_checked_in_parts(tool: Any) -> None:
    runs = [tool.chosen(SOURCES, set(SOURCES), f"{head:08x}") for head in range(40)]
    assert all(60 <= len(files) < 110 for files in runs)
    assert {name for files in runs for name in files} == set(SOURCES)
    assert runs[3] == tool.chosen(SOURCES, set(SOURCES), "00000003")


def test_ten_turns_check_all_files_once(tool: Any) -> None:
    turns = [tool.chosen(SOURCES, set(), f"{head:08x}ffff") for head in range(10)]
    assert sorted(name for turn in turns for name in turn) == sorted(SOURCES)
    assert max(map(len, turns)) < 50


def test_without_a_base_all_files_are_checked(tool: Any) -> None:
    assert tool.chosen(SOURCES, None, "0" * 40) == SOURCES
