"""Facts about runs: what was executed, in which order, by which thread; known by identity of file and RVA."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "EDGE",
    "FACT",
    "MOST_STEPS",
    "FactKind",
    "Found",
    "Keys",
    "counted_facts",
    "edge_keys",
    "fact_rows",
    "mixed",
    "numbered_by_hash",
]

Keys = NDArray[np.uint64]

MOST_STEPS = 4  # edges that a fact names, at most


class FactKind(IntEnum):
    """What a fact is about, the simplest first."""

    BRANCH = 0  #: an outcome of a conditional branch, or a target of an indirect one
    CALL = 1  #: a function calls another one
    PATH = 2  #: branches that follow each other in a thread
    INTERLEAVING = 3  #: a branch of another thread comes between two that follow each other in a thread
    ORDER = 4  #: the first of a branch in one thread comes before the first of a branch in another one


#: An edge that facts name, with the texts that are printed of it; -1: no text.
EDGE = np.dtype(
    [
        *(("key", "<u8"), ("file", "<i4"), ("rva", "<u8"), ("to_file", "<i4"), ("to_rva", "<u8")),
        *(("kind", "u1"), ("flags", "u1"), ("own", "?"), ("count", "<i8")),
        *(("function", "<i4"), ("source", "<i4"), ("line", "<u4")),
        *(("to_function", "<i4"), ("to_source", "<i4"), ("to_line", "<u4")),
    ]
)

#: A fact of a run: `steps` are keys of edges, 0 for none; `thread` and `other` are texts, -1 for any thread.
FACT = np.dtype(
    [
        *(("key", "<u8"), ("kind", "u1"), ("size", "u1"), ("thread", "<i4"), ("other", "<i4")),
        *(("steps", "<u8", (MOST_STEPS,)), ("count", "<i8")),
    ]
)


@dataclass
class Found:
    """What one recording has.

    Attributes
    ----------
    edges : numpy.ndarray of EDGE
    facts : numpy.ndarray of FACT
    first, last : numpy.ndarray of int64
        When each edge was executed first and last, in ticks from the begin of the recording, or branches
        where times are not known.
    roles : dict of int to set of int
        By keys of own edges: functions that the threads began in which executed it, as numbers of texts.
    notes : list of str
        What the recording does not say.
    """

    edges: NDArray[Any]
    facts: NDArray[Any]
    first: NDArray[np.int64]
    last: NDArray[np.int64]
    roles: dict[int, set[int]]
    notes: list[str]


def mixed(*columns: NDArray[Any] | int) -> Keys:
    """A hash of 64 bits of each row: SplitMix64's finalizer over the columns."""
    found = np.uint64(0x9E3779B97F4A7C15)
    with np.errstate(over="ignore"):
        for column in columns:
            values = np.asarray(column).astype(np.int64, copy=False) if _is_signed(column) else column
            word = np.asarray(values).astype(np.uint64) + found * np.uint64(0xD1342543DE82EF95)
            word ^= word >> np.uint64(30)
            word *= np.uint64(0xBF58476D1CE4E5B9)
            word ^= word >> np.uint64(27)
            word *= np.uint64(0x94D049BB133111EB)
            found = word ^ word >> np.uint64(31)
    return np.asarray(found, np.uint64)


def _is_signed(column: NDArray[Any] | int) -> bool:
    return np.asarray(column).dtype.kind == "i"


def numbered_by_hash(*columns: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.intp]]:
    """Number rows by their hash, in any order; equal rows have one number. Returns also a row of each number.

    One sort, where `ptkit.support.groups.numbered` has one for each column.
    """
    keys = mixed(*columns)
    order = np.argsort(keys)
    in_order = keys[order]
    is_new = np.ones(len(keys), np.bool_)
    is_new[1:] = in_order[1:] != in_order[:-1]
    numbers = np.empty(len(keys), np.int64)
    numbers[order] = np.cumsum(is_new) - 1
    return numbers, order[is_new]


def edge_keys(
    file: NDArray[Any], rva: NDArray[Any], to_file: NDArray[Any], to_rva: NDArray[Any], kind: NDArray[Any]
) -> Keys:
    """Keys of edges, of which files have the numbers of all recordings; never 0."""
    return np.asarray(mixed(file, rva, to_file, to_rva, kind) | np.uint64(1), np.uint64)


def fact_rows(
    kind: FactKind,
    steps: Sequence[Keys],
    counts: NDArray[np.int64],
    *,
    thread: NDArray[np.int32] | int = -1,
    other: NDArray[np.int32] | int = -1,
    keys: Keys | None = None,
) -> NDArray[Any]:
    """Rows of facts of one kind; `keys`: what the fact is known by, if not by its steps."""
    rows = np.zeros(len(counts), FACT)
    rows["kind"], rows["size"], rows["thread"], rows["other"] = int(kind), len(steps), thread, other
    for number, column in enumerate(steps):
        rows["steps"][:, number] = column
    known_by = steps if keys is None else [keys]
    rows["key"] = mixed(int(kind), len(steps), rows["thread"], rows["other"], *known_by)
    rows["count"] = counts
    return rows


def counted_facts(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """One row for each fact, in the order of keys, with the sum of its counts."""
    rows = np.concatenate(parts) if parts else np.zeros(0, FACT)
    rows = rows[np.argsort(rows["key"], kind="stable")]
    if not len(rows):
        return rows
    first = np.flatnonzero(np.append(True, rows["key"][1:] != rows["key"][:-1]))
    found = rows[first]
    found["count"] = np.add.reduceat(rows["count"], first)
    return found
