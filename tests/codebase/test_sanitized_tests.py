"""Which C++ tests and fuzz targets CI builds with sanitizers, and that the build follows."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

import sanitized_tests

ROOT = Path(__file__).resolve().parents[2]
# Five sub-folders with 20 tests each.
FOLDERS = {
    f"tests/unit/{folder}/test_{number}.cpp": {f"src/{folder}"}
    for folder in ("flow/fast", "flow/walk", "time", "capture/linux/perf", "formats/ptk")
    for number in range(20)
}


def hashes(count: int) -> list[str]:
    return [f"{number:08x}" + 32 * "0" for number in range(count)]


def test_tests_of_a_changed_folder_are_built() -> None:
    of_folder = {name for name, folders in FOLDERS.items() if folders == {"src/flow/fast"}}
    for commit in hashes(4):
        files = sanitized_tests.chosen(FOLDERS, {"src/flow/fast/fast_loop.h", "docs/time.md"}, commit, 40)
        assert of_folder <= set(files)
        assert files == [name for name in FOLDERS if name in files]
        assert len(files) <= 20 + 25


def test_a_changed_test_is_built_alone() -> None:
    changed = "tests/unit/time/test_7.cpp"
    for commit in hashes(4):
        in_turn = sanitized_tests.chosen(FOLDERS, set(), commit, 40)
        assert set(sanitized_tests.chosen(FOLDERS, {changed}, commit, 40)) == {*in_turn, changed}


def test_consecutive_hashes_build_all_once() -> None:
    turns = [sanitized_tests.chosen(FOLDERS, set(), commit, 40) for commit in hashes(6)]
    assert sorted(name for turn in turns for name in turn) == sorted(FOLDERS)
    assert [len(turn) for turn in turns] == [17, 17, 17, 17, 16, 16]


def test_a_change_of_all_folders_builds_a_part() -> None:
    changed = {f"{folder}/file.cpp" for folders in FOLDERS.values() for folder in folders}
    turns = [sanitized_tests.chosen(FOLDERS, changed, commit, 40) for commit in hashes(20)]
    assert all(40 <= len(turn) <= 40 + 25 for turn in turns)
    assert {name for turn in turns for name in turn} == set(FOLDERS)
    assert turns[3] == sanitized_tests.chosen(FOLDERS, changed, hashes(4)[3], 40)


def test_without_a_base_all_are_built() -> None:
    assert sanitized_tests.chosen(FOLDERS, None, "0" * 40, 40) == list(FOLDERS)


def test_no_turn_is_without_a_fuzz_target() -> None:
    targets = {path.relative_to(ROOT).as_posix(): {"src"} for path in ROOT.glob("tests/fuzz/fuzz_*.cpp")}
    turns = [sanitized_tests.chosen(targets, set(), commit, 4) for commit in hashes(6)]
    assert all(turns)
    assert {name for turn in turns for name in turn} == set(targets)


def test_folders_of_tests_exist() -> None:
    tests = [path.relative_to(ROOT).as_posix() for path in ROOT.glob("tests/unit/**/test_*.cpp")]
    assert len(tests) > 100
    folders = {folder for name in tests for folder in sanitized_tests.mirrored_folders(name)}
    assert {folder for folder in folders if not (ROOT / folder).is_dir()} == set()


def test_fuzz_targets_are_touched_by_folders_of_their_headers() -> None:
    folders = {
        path.stem: sanitized_tests.included_folders(path) for path in ROOT.glob("tests/fuzz/fuzz_*.cpp")
    }
    assert all(any((ROOT / folder).is_dir() for folder in of_target) for of_target in folders.values())
    assert "src/time" in folders["fuzz_time"]


def test_a_build_has_the_chosen_tests_only(tmp_path: Path) -> None:
    if shutil.which("clang++") is None:
        pytest.skip("clang is missing")
    files = ["tests/unit/time/test_track.cpp", "tests/unit/packet/test_rows.cpp", "tests/fuzz/fuzz_time.cpp"]
    assert all((ROOT / name).is_file() for name in files)
    command = ["cmake", "-S", ROOT, "-B", tmp_path, "-DPTKIT_TESTS=ON", "-DPTKIT_FUZZ=ON"]
    command += ["-DCMAKE_CXX_COMPILER=clang++", f"-DPTKIT_TEST_FILES={';'.join(files)}"]
    subprocess.run(command, check=True, capture_output=True)
    database = (tmp_path / "compile_commands.json").read_text(encoding="utf-8")
    built = re.findall(r'"file": ".*/(tests/(?:unit/.*/test_|fuzz/fuzz_)\w+\.cpp)"', database)
    assert sorted(built) == sorted(files)
    assert (tmp_path / "tests/fuzz/targets.txt").read_text(encoding="utf-8") == "fuzz_time\n"
