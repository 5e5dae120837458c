"""Rows of a set at each of its levels, and what operators make of them.

A row is an element of the set if what ran of it (`Level.amount`) is more than 0. Other rows are known code
that did not run, or that an operator took out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptkit.support.groups import numbered

__all__ = ["BEGINS", "LEVELS", "OPERATORS", "PASSES", "Level", "Rows", "combined", "grouped", "with_numbers"]

Rows = NDArray[Any]

#: Bits of `flags`: a block begins with the instruction; the edge is that of a branch that was not taken.
BEGINS = 1
PASSES = 1


@dataclass(frozen=True)
class Level:
    """Rows of one kind.

    Attributes
    ----------
    dtype : numpy.dtype
    keys : tuple of str
        Columns that say which element it is.
    sums : tuple of str
        Columns that are added up.
    amount : str
        One of these: what ran.
    files, texts : tuple of str
        Columns that are numbers of files, and of texts (-1: none).
    """

    dtype: np.dtype[Any]
    keys: tuple[str, ...]
    sums: tuple[str, ...]
    amount: str
    files: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()


_FILE, _RVA, _COUNT, _FLAGS = ("file", "<i4"), ("rva", "<u8"), ("count", "<i8"), ("flags", "u1")
_LINE, _WORK = [("source", "<i4"), ("line", "<u4")], ("instructions", "<i8")

#: `check`: CRC-32 of the bytes of an instruction, where its file has no build-id; else 0.
LEVELS = MappingProxyType(
    {
        "code": Level(
            np.dtype(
                [_FILE, _RVA, ("size", "u1"), _FLAGS, ("check", "<u4"), *_LINE, ("function", "<i4"), _COUNT]
            ),
            ("file", "rva"),
            ("count",),
            "count",
            ("file",),
            ("source", "function"),
        ),
        "edges": Level(
            np.dtype(
                [
                    *(("from_file", "<i4"), ("from_rva", "<u8"), ("to_file", "<i4"), ("to_rva", "<u8")),
                    *(("kind", "u1"), _FLAGS, *_LINE, ("function", "<i4"), _COUNT),
                ]
            ),
            ("from_file", "from_rva", "to_file", "to_rva", "kind"),
            ("count",),
            "count",
            ("from_file", "to_file"),
            ("source", "function"),
        ),
        "functions": Level(
            np.dtype([_FILE, _RVA, ("function", "<i4"), *_LINE, _COUNT, _WORK]),
            ("file", "rva", "function"),
            ("count", "instructions"),
            "instructions",
            ("file",),
            ("source", "function"),
        ),
        "lines": Level(
            np.dtype([*_LINE, _COUNT, _WORK]),
            ("source", "line"),
            ("count", "instructions"),
            "instructions",
            (),
            ("source",),
        ),
    }
)

_Mask = NDArray[np.bool_]
#: By operator: which elements the result has, of those that either set has.
OPERATORS: MappingProxyType[str, Callable[[_Mask, _Mask], _Mask]] = MappingProxyType(
    {
        "|": lambda some, others: some | others,
        "&": lambda some, others: some & others,
        "-": lambda some, others: some & ~others,
        "^": lambda some, others: some ^ others,
    }
)


def grouped(level: Level, rows: Rows) -> Rows:
    """One row for each element, in the order of the keys: sums, all flags, the rest of the first row."""
    if not len(rows):
        return rows
    numbers, first = numbered([np.ascontiguousarray(rows[name]) for name in level.keys])
    found: Rows = rows.take(first)
    if len(first) == len(rows):
        return found
    for name in level.sums:
        found[name] = _sums(numbers, rows[name], len(first))
    if "flags" in (level.dtype.names or ()):
        flags = np.zeros(len(first), np.uint8)
        np.bitwise_or.at(flags, numbers, rows["flags"])
        found["flags"] = flags
    return found


def combined(level: Level, operator: str, some: Rows, others: Rows) -> Rows:
    """Rows of both sets: sums of elements that the result has; 0 and no flags for others."""
    rows = np.concatenate([some, others])
    found = grouped(level, rows)
    if not len(rows):
        return found
    numbers, _ = numbered([rows[name] for name in level.keys])
    is_first = np.arange(len(rows)) < len(some)
    ran = rows[level.amount] > 0
    here, there = (np.zeros(len(found), np.bool_) for _ in range(2))
    here[numbers[ran & is_first]] = True
    there[numbers[ran & ~is_first]] = True
    kept = OPERATORS[operator](here, there)
    for name in (*level.sums, *(["flags"] if "flags" in (level.dtype.names or ()) else [])):
        found[name][~kept] = 0
    return found


def with_numbers(level: Level, rows: Rows, files: NDArray[np.int32], texts: NDArray[np.int32]) -> Rows:
    """Rows with other numbers of files and texts."""
    found: Rows = rows.copy()
    for name in level.files:
        found[name] = files[rows[name]]
    codes = np.append(texts, np.int32(-1))  # of no text
    for name in level.texts:
        found[name] = codes[rows[name]]
    return found


def _sums(numbers: NDArray[np.int64], values: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    sums = np.zeros(size, np.int64)
    np.add.at(sums, numbers, values)
    return sums
