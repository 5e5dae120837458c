"""Files of machine code: by their identity, wherever they lie."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ptkit.errors import ConfigError
from ptkit.support.text import module_name

__all__ = ["CodeFile", "matched", "other_builds", "united"]

_SHOWN = 16  # characters of a build-id in messages


@dataclass(frozen=True)
class CodeFile:
    """A file of machine code in a set.

    Attributes
    ----------
    path : str
        As the first recording has it.
    build_id : str
        Build-id of an ELF file, or GUID and age of a PE file's PDB, else its time stamp and size; empty: the
        file has none, and its name and its code are compared instead.
    all_lines, all_functions : bool
        Lines, and named functions, that did not run are known, too.
    is_whole : bool
        Those are of the whole file, not of selected addresses.
    """

    path: str
    build_id: str
    all_lines: bool = False
    all_functions: bool = False
    is_whole: bool = False

    @property
    def name(self) -> str:
        """Name of the file, without its folders."""
        return module_name(self.path)

    @property
    def key(self) -> tuple[str, str]:
        """The identity: equal for a file that lies elsewhere."""
        return ("", self.build_id) if self.build_id else (self.name, "")

    def __str__(self) -> str:
        return f"{self.name} ({self.build_id[:_SHOWN] or 'no build-id'})"


def united(files: Sequence[CodeFile]) -> tuple[tuple[CodeFile, ...], NDArray[np.int32]]:
    """Files with distinct identities, and the number among them of each one that is given."""
    found: dict[tuple[str, str], CodeFile] = {}
    for one in files:
        first = found.setdefault(one.key, one)
        found[one.key] = replace(
            first,
            all_lines=first.all_lines or one.all_lines,
            all_functions=first.all_functions or one.all_functions,
            is_whole=first.is_whole or one.is_whole,
        )
    numbers = {key: number for number, key in enumerate(found)}
    return tuple(found.values()), np.array([numbers[one.key] for one in files], np.int32)


def matched(
    some: Sequence[CodeFile], others: Sequence[CodeFile]
) -> tuple[tuple[CodeFile, ...], NDArray[np.int32], NDArray[np.int32]]:
    """Files of two sets, and their numbers in the first and in the second set.

    Raises
    ------
    ConfigError
        If the sets have two builds of one file: a name of which they share no build.
    """
    for name, (one, other) in other_builds(some, others).items():
        raise ConfigError(
            f"{name}: two builds of the file ran: {one} and {other}; RVAs of two builds do not compare. "
            "Record both with one build, select other files (module=, --module), or compare by line: "
            "a.by_line() - b.by_line(), or --by line"
        )
    files, numbers = united([*some, *others])
    return files, numbers[: len(some)], numbers[len(some) :]


def other_builds(
    some: Sequence[CodeFile], others: Sequence[CodeFile]
) -> dict[str, tuple[CodeFile, CodeFile]]:
    """Files of one name of which two sets have no build in common, by name: one of each."""
    builds = _builds(some), _builds(others)
    found = {}
    for name in sorted(builds[0].keys() & builds[1].keys()):
        here, there = builds[0][name], builds[1][name]
        if here.keys().isdisjoint(there):
            found[name] = next(iter(here.values())), next(iter(there.values()))
    return found


def _builds(files: Sequence[CodeFile]) -> dict[str, dict[tuple[str, str], CodeFile]]:
    """Files by name and identity."""
    found: dict[str, dict[tuple[str, str], CodeFile]] = {}
    for one in files:
        found.setdefault(one.name, {})[one.key] = one
    return found
