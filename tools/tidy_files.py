#!/usr/bin/env python3
"""Print the C++ files that clang-tidy is to check: those that changed, and a fifteenth of all in turn.

    tidy_files.py [--all]

tools/changes.py says what counts as changed; without anything to compare with, all files are checked. A
source stands for its header. If more than 30 changed (a renaming), 30 of them are checked.
"""

from __future__ import annotations

import sys
from pathlib import PurePosixPath

import changes

_PARTS = 15
_MOST_CHANGED = 30
# Headers of pybind11 and of Windows are not part of the configured tree: the compiler alone checks these.
_LEFT_OUT = ("src/api/python/", "/win32/")


def chosen(sources: list[str], changed: set[str] | None, commit: str) -> list[str]:
    """Return the sources to check.

    Parameters
    ----------
    sources : list of str
        All of them.
    changed : set of str or None
        Files that changed; None: there is nothing to compare with.
    commit : str
        The hash, which chooses the fifteenth.
    """
    if changed is None:
        return sources
    stems = {PurePosixPath(name).with_suffix("") for name in changed}
    touched = [name for name in sources if PurePosixPath(name).with_suffix("") in stems]
    return changes.chosen(sources, touched, commit, _MOST_CHANGED, _PARTS)


def main() -> int:
    """Print the files, one a line."""
    sources = [
        name for name in changes.git("ls-files", "src/*.cpp") if not any(part in name for part in _LEFT_OUT)
    ]
    changed = None if "--all" in sys.argv[1:] else changes.changed_files()
    print("\n".join(chosen(sources, changed, changes.hash_of("HEAD"))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
