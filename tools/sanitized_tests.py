#!/usr/bin/env python3
"""Print the C++ tests and fuzz targets that CI builds with sanitizers, as a list of CMake (PTKIT_TEST_FILES).

    sanitized_tests.py COMMIT

Those that the change touches, and a sixth of all, which the commit's hash chooses. A test is touched by a
change of its own file and of the sub-folder of src/ that it mirrors; a fuzz target by a change of its file
and of a sub-folder from which it includes a header. At most 20 tests and 4 fuzz targets are taken because
they are touched. tools/changes.py says what counts as changed; without anything to compare with, all are
built.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path, PurePosixPath

import changes

_PARTS = 6
_MOST_TESTS = 20
_MOST_FUZZ_TARGETS = 4
_INCLUDE = re.compile(r'^#include "(.*)/[^/]+"', re.MULTILINE)


def mirrored_folders(test: str) -> set[str]:
    """Return the folders that a test of tests/unit/ mirrors."""
    folder = PurePosixPath(test).parent.relative_to("tests/unit").as_posix()
    beside = {"kernel": {"kernel/common", "kernel/include/ptkit"}, "ptmodel": {"ptmodel"}}
    return beside.get(folder, {f"src/{folder}"})


def included_folders(source: Path) -> set[str]:
    """Return the folders of src/ from which a fuzz target includes headers."""
    return {f"src/{folder}" for folder in _INCLUDE.findall(source.read_text(encoding="utf-8"))}


def chosen(folders_of: dict[str, set[str]], changed: set[str] | None, commit: str, most: int) -> list[str]:
    """Return the tests to build.

    Parameters
    ----------
    folders_of : dict
        The files of all tests, and the folders whose change touches each.
    changed : set of str or None
        Files that changed; None: there is nothing to compare with.
    commit : str
        The hash, which chooses the sixth.
    most : int
        So many of the touched tests are built at most.
    """
    if changed is None:
        return list(folders_of)
    folders = {PurePosixPath(name).parent.as_posix() for name in changed}
    touched = [name for name, of_test in folders_of.items() if name in changed or of_test & folders]
    return changes.chosen(list(folders_of), touched, commit, most, _PARTS)


def main() -> int:
    """Print the files, separated by semicolons."""
    tests = {name: mirrored_folders(name) for name in changes.git("ls-files", "tests/unit/**/test_*.cpp")}
    fuzz_targets = {
        name: included_folders(changes.ROOT / name)
        for name in changes.git("ls-files", "tests/fuzz/fuzz_*.cpp")
    }
    changed = changes.changed_files()
    commit = changes.hash_of(sys.argv[1])
    files = [
        *chosen(tests, changed, commit, _MOST_TESTS),
        *chosen(fuzz_targets, changed, commit, _MOST_FUZZ_TARGETS),
    ]
    print(";".join(files))
    return 0


if __name__ == "__main__":
    sys.exit(main())
