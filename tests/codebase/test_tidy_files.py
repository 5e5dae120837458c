"""Which files `make lint` gives to clang-tidy."""

from __future__ import annotations

import tidy_files

SOURCES = [f"src/flow/file{number}.cpp" for number in range(200)]


def test_changed_files_and_sources_of_changed_headers_are_checked() -> None:
    changed = {"src/flow/file3.cpp", "src/flow/file5.h", "docs/time.md"}
    for head in range(10):
        files = tidy_files.chosen(SOURCES, changed, f"{head:08x}")
        assert {"src/flow/file3.cpp", "src/flow/file5.cpp"} <= set(files)
        assert files == [name for name in SOURCES if name in files]


def test_a_change_of_most_files_is_checked_in_parts() -> None:
    runs = [tidy_files.chosen(SOURCES, set(SOURCES), f"{head:08x}") for head in range(40)]
    assert all(30 <= len(files) < 70 for files in runs)
    assert {name for files in runs for name in files} == set(SOURCES)
    assert runs[3] == tidy_files.chosen(SOURCES, set(SOURCES), "00000003")


def test_all_turns_check_all_files_once() -> None:
    turns = [tidy_files.chosen(SOURCES, set(), f"{head:08x}ffff") for head in range(15)]
    assert sorted(name for turn in turns for name in turn) == sorted(SOURCES)
    assert max(map(len, turns)) < 50


def test_without_a_base_all_files_are_checked() -> None:
    assert tidy_files.chosen(SOURCES, None, "0" * 40) == SOURCES
