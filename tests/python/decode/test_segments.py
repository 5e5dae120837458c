"""A long stream that several threads decode in segments gives the tables that one thread gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from damage import damaged

import ptkit
from ptkit.support.schema import schema_of
from ptkit.table import concatenate

TIMES = {"tsc", "tsc_error", "tsc_source", "flags", "tsc_estimate"}


def columns_of(table: str, *, times: bool) -> list[str]:
    """All columns, or those for which no time is needed."""
    return [
        name for name in schema_of(table).names("stored", "on demand", "run") if times or name not in TIMES
    ]


def assert_same(cut: Any, whole: Any) -> None:
    assert len(cut) == len(whole)
    for name in whole.columns:
        assert np.array_equal(cut[name], whole[name]), name
    for side in ("errors", "gaps"):
        rows, other = getattr(cut, side), getattr(whole, side)
        assert (rows is None) == (other is None)
        if rows is None:
            continue
        for name in rows.available:
            assert np.array_equal(rows[name], other[name]), (side, name)


@pytest.fixture(params=[0, 40], ids=["whole", "damaged"])
def long(request: Any, loop: Any, open_trace: Any) -> Any:
    """Some hundred kilobytes, with a PSB every 400 bytes."""
    return open_trace(damaged(loop.stream(30_000), request.param), images=loop.images())


@pytest.mark.parametrize("table", ["branches", "blocks", "instructions", "events"])
@pytest.mark.parametrize("times", [False, True])
def test_tables_in_segments_are_those_of_one_thread(long: Any, table: str, times: bool) -> None:
    columns = columns_of(table, times=times)
    whole = getattr(long, table)(columns=columns, threads=1)
    for threads in (2, 3):
        assert_same(getattr(long, table)(columns=columns, threads=threads), whole)


def test_edges_in_segments_are_those_of_one_thread(long: Any) -> None:
    assert_same(long.edges(threads=3), long.edges(threads=1))


@pytest.mark.parametrize("reuse", [False, True])
def test_parts_in_segments_are_those_of_one_thread(long: Any, reuse: bool) -> None:
    columns = columns_of("branches", times=True)
    parts = long.iter_branches(columns=columns, threads=3, rows=7777, reuse=reuse)
    joined = concatenate([part[np.arange(len(part))] for part in parts])
    whole = long.branches(columns=columns, threads=1)
    for name in columns:
        assert np.array_equal(joined[name], whole[name]), name


def test_selections_in_segments_are_those_of_one_thread(long: Any, loop: Any) -> None:
    for selection in ({"taken": True}, {"ip": (loop.JMP, loop.JMP + 1)}, {"ip": (0, 1)}):
        cut, whole = (long.branches(columns=["to_ip", "kind"], threads=n, **selection) for n in (2, 1))
        assert_same(cut, whole)


def test_iterator_that_is_dropped_ends_its_threads(long: Any) -> None:
    for _ in range(5):
        parts = long.iter_branches(columns=["to_ip"], threads=4, rows=100)
        assert len(next(parts)) == 100
        del parts


def test_the_first_error_is_raised(loop: Any, open_trace: Any) -> None:
    trace = open_trace(damaged(loop.stream(30_000), 20), images=loop.images(), threads=3)
    first = trace.branches(columns=["to_ip"]).errors[0:1]
    with pytest.raises(ptkit.DecodeError) as caught:
        trace.branches(columns=["to_ip"], errors="raise")
    assert caught.value.offset == int(first["offset"][0])


def test_what_a_callback_raises_comes_out(loop: Any, open_trace: Any) -> None:
    def code(address: int, size: int, space: int) -> bytes | None:
        raise KeyError(hex(address))

    trace = open_trace(loop.stream(30_000), image_callback=code)
    with pytest.raises(KeyError):
        trace.branches(columns=["to_ip"], threads=3)


def test_callback_gives_code_to_every_segment(loop: Any, open_trace: Any) -> None:
    def code(address: int, size: int, space: int) -> bytes | None:
        return loop.CODE[address - loop.BASE :][:size] if 0 <= address - loop.BASE < len(loop.CODE) else None

    trace = open_trace(loop.stream(30_000), image_callback=code)
    cut, whole = (trace.branches(columns=["to_ip", "from_ip"], threads=n) for n in (3, 1))
    assert len(whole) > 100_000
    assert_same(cut, whole)


@pytest.mark.parametrize("name", ["mruby", "avscript_32"])
def test_hardware_traces_in_segments_are_those_of_one_thread(
    corpus: Path, open_trace: Any, name: str
) -> None:
    trace = open_trace(corpus / "libxdc" / name)
    for table in ("branches", "instructions", "events"):
        columns = columns_of(table, times=True)
        cut, whole = (getattr(trace, table)(columns=columns, threads=n) for n in (3, 1))
        assert len(whole) > 0
        assert_same(cut, whole)
