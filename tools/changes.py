"""Files that a commit changes, and the part of the rest that is checked in turn.

CI does not check everything with each commit: tidy_files.py and sanitized_tests.py choose by this module.
Changed are files that differ from the newest commit that is a day older than HEAD, or from the newest tag
if the history does not go back so far. All choices follow from the hash of a commit: a run can be repeated.
"""

from __future__ import annotations

import subprocess
import zlib
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def git(*arguments: str) -> list[str]:
    """Return the lines that git prints in this repository; none if it fails."""
    command = ["git", "-C", str(ROOT), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.split("\n")[:-1] if done.returncode == 0 else []


def hash_of(commit: str) -> str:
    """Return the hash of a commit that git names, such as HEAD."""
    (digits,) = git("rev-parse", "--verify", f"{commit}^{{commit}}")
    return digits


def changed_files() -> set[str] | None:
    """Return the files that changed; None: there is nothing to compare with."""
    head_time = datetime.fromisoformat(git("log", "-1", "--format=%cI")[0])
    older = git("rev-list", "-1", f"--before={(head_time - timedelta(days=1)).isoformat()}", "HEAD")
    tag = git("describe", "--tags", "--abbrev=0")
    base = (older or tag or [None])[0]
    return set(git("diff", "--name-only", base)) if base else None


def chosen(names: Sequence[str], touched: Collection[str], commit: str, most: int, parts: int) -> list[str]:
    """Return the names to check, in their order: those that are touched, and a part of all in turn.

    Parameters
    ----------
    names : sequence of str
        All of them.
    touched : collection of str
        Names that have to be checked because of the change.
    commit : str
        The hash that chooses.
    most : int
        So many of the touched names are checked at most.
    parts : int
        So many consecutive hashes check all names once.
    """
    by_commit = sorted(touched, key=lambda name: zlib.crc32((commit + name).encode()))
    # Parts of equal size: one of few names is not empty.
    by_name = sorted(names, key=lambda name: zlib.crc32(name.encode()))
    wanted = {*by_commit[:most], *by_name[int(commit[:8], 16) % parts :: parts]}
    return [name for name in names if name in wanted]
