"""Counts and lengths of time are signed: what is less has a negative difference."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ptkit.support.schema import tables
from ptkit.table.derived import derived_of

COUNTS = (
    "count",
    "begin_unseen",
    "instructions",
    "self_instructions",
    "branches",
    "instruction",
    "end_instruction",
    "branch",
    "end_branch",
    "lost_bytes",
)
LENGTHS = ("least", "most", "p50", "p99", "max", "untraced", "switched", "lost", "running")
POSITIONS = (
    "tsc",
    "end_tsc",
    "tsc_estimate",
    "code_tsc",
    "tsc_from",
    "tsc_to",
    "offset",
    "end_offset",
    "begin",
    "end",
)


def columns() -> list[tuple[str, Any]]:
    return [
        (name, column)
        for name, schema in tables().items()
        for column in (*schema.columns.values(), *(one.column for one in derived_of(name).values()))
    ]


def test_dtypes() -> None:
    seen = set()
    for table, column in columns():
        name = column.name.removesuffix("_error")
        if table == "instructions" and name == "instructions":
            continue
        if name in LENGTHS or column.name in COUNTS:
            # A block has few instructions.
            wanted = np.int32 if (table, name) == ("blocks", "instructions") else np.int64
        elif column.name in POSITIONS or column.unit == "address":
            wanted = np.uint64
        else:
            continue
        assert column.dtype == wanted, f"{table}: {column.name}"
        seen.add(column.name)
    assert seen >= {*COUNTS, *LENGTHS, *POSITIONS}


@pytest.mark.parametrize(
    ("table", "name"),
    [("functions", "instructions"), ("edges", "count"), ("calls", "branches"), ("blocks", "instructions")],
)
def test_differences_do_not_wrap(table: str, name: str, ask: Callable[..., Any]) -> None:
    values = ask(table)[name]
    assert values.dtype == ask(table).column(name).dtype
    less = values - (values + 1)
    assert set(less.tolist()) == {-1}
    frame = ask(table).to_pandas([name])
    assert ((frame[name] - frame[name].max()) <= 0).all()


def test_histograms_and_lengths(ask: Callable[..., Any]) -> None:
    calls = ask("calls")
    for of in ("instructions", "time"):
        assert calls.lengths(of)[0].dtype == np.int64
        found = calls.histogram(of)
        assert {one.dtype for one in (found.limits, found.counts, found.totals)} == {np.dtype(np.int64)}
    by_line = ask("functions", ["count"])["count"].dtype
    assert by_line == np.int64
