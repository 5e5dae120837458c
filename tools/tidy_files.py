#!/usr/bin/env python3
"""Print the C++ files that clang-tidy is to check: those that changed, and a tenth of the others in turn.

    tidy_files.py [--all]

Changed are files that differ from the newest commit that is a day older than HEAD, or from the newest tag
if the history does not go back so far, and from neither: all. A source stands for its header. If more than
60 changed (a renaming), 60 of them are checked. Which tenth and which 60 follows from the hash of HEAD, so
that a run can be repeated; a file is checked once in some ten changes.
"""

from __future__ import annotations

import subprocess
import sys
import zlib
from datetime import datetime, timedelta
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[1]
_PARTS = 10
_MOST_CHANGED = 60
# pybind11's headers are not part of the configured tree, so bindings are checked by the compiler only.
_LEFT_OUT = "src/bindings/"


def _git(*arguments: str) -> list[str]:
    command = ["git", "-C", str(ROOT), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.split("\n")[:-1] if done.returncode == 0 else []


def _base() -> str | None:
    """Return the commit with which HEAD is compared."""
    head_time = datetime.fromisoformat(_git("log", "-1", "--format=%cI")[0])
    older = _git("rev-list", "-1", f"--before={(head_time - timedelta(days=1)).isoformat()}", "HEAD")
    tag = _git("describe", "--tags", "--abbrev=0")
    return (older or tag or [None])[0]


def chosen(sources: list[str], changed: set[str] | None, head: str) -> list[str]:
    """Return the sources to check.

    Parameters
    ----------
    sources : list of str
        All of them.
    changed : set of str or None
        Files that changed; None: there is nothing to compare with.
    head : str
        The hash of the commit, which chooses the tenth.
    """
    if changed is None:
        return sources
    stems = {PurePosixPath(name).with_suffix("") for name in changed}
    touched = [name for name in sources if PurePosixPath(name).with_suffix("") in stems]
    in_turn = set(sorted(touched, key=lambda name: zlib.crc32((head + name).encode()))[:_MOST_CHANGED])
    turn = int(head[:8], 16) % _PARTS
    return [name for name in sources if name in in_turn or zlib.crc32(name.encode()) % _PARTS == turn]


def main() -> int:
    """Print the files, one a line."""
    sources = [name for name in _git("ls-files", "src/*.cpp") if not name.startswith(_LEFT_OUT)]
    base = _base()
    changed = set(_git("diff", "--name-only", base)) if base and "--all" not in sys.argv[1:] else None
    (head,) = _git("rev-parse", "HEAD")
    print("\n".join(chosen(sources, changed, head)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
