"""Rows in the order of columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ptkit
from ptkit.table import Table
from ptkit.table.table import from_core


def edges(counts: list[int], kinds: list[int], known: list[bool]) -> Table:
    """Edges with these counts and kinds, and targets that are their numbers."""
    rows = len(counts)
    arrays: dict[str, Any] = {
        "from_ip": np.zeros(rows, np.uint64),
        "to_ip": np.arange(rows, dtype=np.uint64) + np.uint64(2**64 - rows),
        "kind": np.array(kinds, np.uint8),
        "count": np.array(counts, np.int64),
        "space": np.zeros(rows, np.uint32),
        "flags": np.where(known, ptkit.RowFlag.TO_KNOWN, 0).astype(np.uint8),
    }
    return from_core("edges", (rows, arrays, {}))


TABLE = edges([5, 2, 5, 9, 2, 0], [1, 0, 0, 2, 1, 0], [True, True, False, True, False, True])


def test_sort_keeps_the_order_of_equal_rows() -> None:
    assert TABLE.sort("count")["to_ip"].tolist() == TABLE["to_ip"][[5, 1, 4, 0, 2, 3]].tolist()
    falls = TABLE.sort("count", descending=True)
    assert falls["count"].tolist() == [9, 5, 5, 2, 2, 0]
    assert falls["to_ip"].tolist() == TABLE["to_ip"][[3, 0, 2, 1, 4, 5]].tolist()
    assert falls["count"].dtype == np.int64
    assert TABLE["count"].tolist() == [5, 2, 5, 9, 2, 0]


def test_sort_by_several_columns() -> None:
    found = TABLE.sort("kind", "count", descending=[False, True])
    assert found["kind"].tolist() == [0, 0, 0, 1, 1, 2]
    assert found["count"].tolist() == [5, 2, 0, 5, 2, 9]
    assert TABLE.sort("kind", "count")["count"].tolist() == [0, 2, 5, 2, 5, 9]


def test_unknown_values_come_last() -> None:
    for descending in (False, True):
        found = TABLE.sort("to_ip", descending=descending)
        assert found.named("to_ip")[-2:] == [None, None]
        known = found.named("to_ip")[:-2]
        assert known == sorted(known, reverse=descending)
    assert TABLE.sort("to_known", descending=True)["to_known"].tolist() == [True] * 4 + [False] * 2


def test_head_and_nlargest() -> None:
    assert TABLE.head(2)["count"].tolist() == [5, 2]
    assert len(TABLE.head()) == 5
    assert len(TABLE.head(99)) == 6
    assert len(TABLE.head(0)) == 0
    assert TABLE.nlargest(3, "count")["count"].tolist() == [9, 5, 5]
    assert TABLE.nlargest(3, ["kind", "count"])["count"].tolist() == [9, 5, 2]
    assert TABLE[:0].nlargest(3, "count").columns == TABLE.columns


def test_names_and_times(ask: Callable[..., Any]) -> None:
    functions = ask("functions")
    by_name = functions.sort("function").named("function")
    assert by_name == sorted(by_name)
    by_module = functions.sort("module", descending=True).named("module")
    assert by_module[0] == "again.elf"
    times = functions.sort("p99_ns", descending=True)["p99_ns"].tolist()
    assert times == sorted(times, reverse=True)
    calls = ask("calls").sort("instructions", descending=True)
    assert isinstance(calls, ptkit.CallTable)
    assert calls.functions().named("count") == ask("calls").functions().named("count")


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        (lambda table: table.sort(), ptkit.ConfigError, "sort: no column is given; there are from_ip"),
        (lambda table: table.sort("p99"), ptkit.ColumnError, "edges has no column 'p99'"),
        (
            lambda table: table.sort("count", descending=[True, False]),
            ptkit.ConfigError,
            "2 values do not fit 1",
        ),
        (lambda table: table.sort("count", descending="yes"), ptkit.ConfigError, "descending"),
        (lambda table: table.head(-1), ptkit.ConfigError, "count"),
        (lambda table: table.nlargest(1.5, "count"), ptkit.ConfigError, "count"),
    ],
)
def test_wrong_arguments(wrong: Callable[[Table], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        wrong(TABLE)
