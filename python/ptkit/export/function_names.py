"""Names of functions for files of other tools, which know a function by its name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ptkit.decode.plan import check_choice
from ptkit.support.text import one_line
from ptkit.table.distinct_names import distinct_names

if TYPE_CHECKING:
    from ptkit.table import Table

__all__ = ["FunctionNames", "distinct", "function_names"]

_UNKNOWN = "[unknown]"


@dataclass(frozen=True)
class FunctionNames:
    """Functions by number.

    Attributes
    ----------
    names : list of str
        Names, each another one, without control characters.
    full : list of str
        Full names, without control characters; some may be equal.
    original : list of str
        Full names as they are in the recording.
    modules : list of str or None
        Names of files without folders, or of memory.
    paths : list of str or None
        Paths of these files.
    entry : numpy.ndarray of uint64, shape (functions,)
        Address of the function where it was first called.
    entry_known : numpy.ndarray of bool, shape (functions,)
        `entry` is known.
    space : numpy.ndarray of uint32, shape (functions,)
        Address space of that call.
    tsc : numpy.ndarray of uint64, shape (functions,)
        Names and code hold from this time on (TSC ticks).
    inlined : numpy.ndarray of bool, shape (functions,)
        Calls of the function that were inlined.
    called : list of int
        Of inlined calls of a function that is called, too, the number of the latter; else its own number.
    file : numpy.ndarray of int32, shape (functions,)
        Index of the file in ``trace.info.files``; -1: none.
    """

    names: list[str]
    full: list[str]
    original: list[str]
    modules: list[str | None]
    paths: list[str | None]
    entry: NDArray[np.uint64]
    entry_known: NDArray[np.bool_]
    space: NDArray[np.uint32]
    tsc: NDArray[np.uint64]
    inlined: NDArray[np.bool_]
    called: list[int]
    file: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.names)


def function_names(
    rows: Table, names: str, paths: Sequence[str], *, marks_inlined: bool = True
) -> FunctionNames:
    """Name the functions of a table of functions or contexts, each row another one.

    Parameters
    ----------
    rows : Table
        One row for each function.
    names : str
        ``"short"``: without parameters and the like, as far as that tells them apart. ``"full"``.
    paths : sequence of str
        Paths of the trace's files.
    marks_inlined : bool
        Inlined calls of a function have `` [inlined]`` after its name; else they have its name.

    Notes
    -----
    Functions with equal names, such as static ones, get their module after the name, and where that is
    equal, too, their offset in it.
    """
    check_choice("names", names, ("short", "full"))
    full: list[str] = [text or _UNKNOWN for text in rows.named("function_full")]
    shown = distinct_names(full) if names == "short" else {}
    inlined = np.array(rows["is_inlined"])
    modules = list(rows.named("module"))
    known = np.array(rows["entry_known"])
    offsets: list[Any] = np.asarray(rows["entry_module_offset"]).tolist()
    relative_known = rows.known("entry_module_offset")
    is_relative = [True] * len(offsets) if relative_known is None else relative_known.tolist()
    ips = np.asarray(rows["entry_ip"]).tolist()
    locations = [offset if has else ip for offset, has, ip in zip(offsets, is_relative, ips, strict=True)]
    file = np.where(np.asarray(rows["file_known"]), np.asarray(rows["file"]), -1).astype(np.int32)
    called = _called(full, inlined.tolist(), file.tolist())
    bare = [one_line(shown.get(text, text)) for text in full]
    if marks_inlined:
        marked = [text + " [inlined]" if inside else text for text, inside in zip(bare, inlined, strict=True)]
        texts = distinct(marked, modules, locations)
    else:
        own = [row for row, one in enumerate(called) if row == one]
        names_of_own = distinct(
            [bare[row] for row in own], [modules[row] for row in own], [locations[row] for row in own]
        )
        by_row = dict(zip(own, names_of_own, strict=True))
        texts = [by_row[one] for one in called]
    return FunctionNames(
        texts,
        [one_line(text) for text in full],
        full,
        modules,
        [paths[index] if 0 <= index < len(paths) else None for index in file.tolist()],
        np.array(rows["entry_ip"]),
        known
        & ~np.asarray(rows["is_syscall"])
        & ~np.asarray(rows["is_interrupt"])
        & ~np.asarray(rows["is_import"]),
        np.array(rows["space"]).astype(np.uint32),
        np.array(rows["code_tsc"]),
        inlined,
        called,
        file,
    )


def _called(full: Sequence[str], inlined: Sequence[bool], files: Sequence[int]) -> list[int]:
    """Number of the function that inlined calls are of, if it is called, too."""
    found: dict[tuple[str, int], int] = {}
    for row, (name, inside, file) in enumerate(zip(full, inlined, files, strict=True)):
        if not inside:
            found.setdefault((name, file), row)
    return [
        found.setdefault((name, file), row) if inside else row
        for row, (name, inside, file) in enumerate(zip(full, inlined, files, strict=True))
    ]


def distinct(names: Sequence[str], modules: Sequence[str | None], locations: Sequence[int]) -> list[str]:
    """Names of which no two are equal: modules are added where they are, then offsets, then numbers.

    Parameters
    ----------
    names : sequence of str
    modules : sequence of str or None
    locations : sequence of int
        Offsets of the functions in their modules.
    """
    rows = list(zip(names, modules, locations, strict=True))
    forms = (
        [name for name, *_ in rows],
        [f"{name} ({one_line(module)})" if module else name for name, module, _ in rows],
        [
            f"{name} ({one_line(module) + '+' if module else ''}{location:#x})"
            for name, module, location in rows
        ],
    )
    found: list[str | None] = [None] * len(rows)
    taken: set[str] = set()
    for form in forms:
        left = [row for row, name in enumerate(found) if name is None]
        seen: dict[str, int] = {}
        for row in left:
            seen[form[row]] = seen.get(form[row], 0) + 1
        for row in left:
            if seen[form[row]] == 1 and form[row] not in taken:
                found[row] = form[row]
                taken.add(form[row])
    made: list[str] = []
    for row, name in enumerate(found):
        number = 2
        base = forms[2][row]
        while name is None:
            name = f"{base} #{number}"
            number += 1
            if name in taken:
                name = None
        taken.add(name)
        made.append(name)
    return made
