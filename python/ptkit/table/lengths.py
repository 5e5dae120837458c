"""Derived columns of frames and sums over them: running time, and lengths of time in nanoseconds."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ptkit.support.schema import Column, TableSchema
from ptkit.table.cells import is_uniform, uniform
from ptkit.table.columns import Columns

__all__ = ["AWAY", "LENGTHS", "length_needs", "length_ns", "running", "running_columns"]

_Ticks: TypeAlias = NDArray[np.int64]

#: Columns of the time in which a thread was away, each with another one that ends with ``_error``.
AWAY = ("untraced", "switched", "lost")
#: Columns of lengths of time, by table.
LENGTHS = {
    "calls": (*AWAY, "running"),
    "threads": ("running", "untraced", "waiting", "preempted"),
    "waits": ("length",),
    "functions": ("least", "most", "p50", "p99", "max", *AWAY, "running"),
}
_WHOLE = {
    "calls": ("tsc", "tsc_error", "end_tsc", "end_tsc_error", "flags"),
    "functions": ("least", "most", "flags"),
}


def running_columns(schema: TableSchema) -> list[Column]:
    """Columns of the time that is left: its least possible value, and what may come in addition."""
    if schema.name not in _WHOLE:
        return []
    ticks = np.dtype(np.int64)
    docs = {
        "running": "least possible time that is neither untraced, switched nor lost",
        "running_error": "that time is in [running, running + running_error]",
    }
    return [Column(name, ticks, "TSC ticks", doc, "derived") for name, doc in docs.items()]


def length_needs(table: str, name: str) -> tuple[str, ...]:
    """Stored columns that a length is made of."""
    if table not in _WHOLE or not name.startswith("running"):
        return (name, "flags")
    return (*_WHOLE[table], *AWAY, *(f"{one}_error" for one in AWAY))


def running(table: Columns, name: str) -> _Ticks:
    """Values of ``running`` or ``running_error``."""
    get = table.arrays
    if table.name == "functions":
        least, most = get["least"], get["most"]
    else:
        begin, end = get["tsc"], get["end_tsc"]
        least = _less(end, begin + get["tsc_error"]).astype(np.int64)
        most = _less(end + get["end_tsc_error"], begin).astype(np.int64)
    away = sum((get[one] for one in AWAY), np.zeros(1, np.int64))
    error = sum((get[f"{one}_error"] for one in AWAY), np.zeros(1, np.int64))
    least = _less(least, away + error)
    return least if name == "running" else _less(_less(most, away), least)


def _less(some: NDArray[Any], others: NDArray[Any]) -> NDArray[Any]:
    """Differences, at least 0."""
    return np.asarray(some - np.minimum(some, others))


def length_ns(table: Columns, ticks: _Ticks) -> NDArray[np.int64]:
    """Lengths in nanoseconds."""
    convert = table.context.length_ns
    assert convert is not None
    if is_uniform(ticks):
        return uniform(convert(ticks[:1])[0], np.int64, len(ticks))
    return convert(ticks)
