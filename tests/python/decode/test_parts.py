"""Parts, threads and merged order give the rows of the whole."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ptkit
from ptkit.table import concatenate

TABLES = ["packets", "branches", "blocks", "instructions", "events"]
OTHERS = ["edges", "errors", "gaps"]


def assert_same(part: Any, whole: Any) -> None:
    assert len(part) == len(whole)
    for name in whole.available:
        assert np.array_equal(part[name], whole[name]), name
    for side in ("errors", "gaps"):
        rows, other = getattr(part, side), getattr(whole, side)
        assert (0 if rows is None else len(rows)) == (0 if other is None else len(other)), side


@pytest.fixture
def many(loop: Any) -> Any:
    """Four streams of different speed, one of them damaged."""
    bundle = ptkit._core.Bundle()
    bundle.add_code(loop.BASE, loop.CODE)
    for number in range(4):
        data = loop.stream(100 + 40 * number, tsc=1000 + 7 * number, step=100 - 20 * number)
        if number == 2:
            data = loop.stream(90, tsc=1014, step=60) + b"\x02\xff" + loop.stream(90, tsc=8000, step=60)
        bundle.add_stream(data, cpu=number, tid=number, pid=1)
    return ptkit.Trace(bundle, ptkit.decode.Settings())


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("rows", [1, 7, 100, 10**6])
@pytest.mark.parametrize("reuse", [False, True])
def test_parts_make_the_whole(many: Any, table: str, rows: int, reuse: bool) -> None:
    if rows == 1 and table != "events":
        rows = 2
    whole = getattr(many, table)()
    copies = []
    for part in getattr(many, f"iter_{table}")(rows=rows, reuse=reuse):
        assert len(part) <= rows
        copies.append(part[np.arange(len(part))] if reuse else part)
        copies[-1].errors, copies[-1].gaps = part.errors, part.gaps
    assert all(len(part) == rows for part in copies[:-1])
    assert_same(concatenate(copies), whole)
    assert len(whole.errors) > 0


@pytest.mark.parametrize("table", OTHERS)
@pytest.mark.parametrize("rows", [1, 2, 10**6])
@pytest.mark.parametrize("reuse", [False, True])
def test_parts_of_the_other_tables(many: Any, table: str, rows: int, reuse: bool) -> None:
    whole = getattr(many, table) if table != "edges" else many.edges()
    assert len(whole) > 0
    parts = getattr(many, f"iter_{table}")(rows=rows, reuse=reuse)
    copies = [part[np.arange(len(part))] for part in parts]
    assert all(len(part) == rows for part in copies[:-1])
    joined = concatenate(copies)
    assert len(joined) == len(whole)
    for name in whole.available:
        assert np.array_equal(joined[name], whole[name]), name


def test_errors_in_parts_are_rows_even_where_they_raise(open_trace: Any, loop: Any) -> None:
    data = loop.stream(3) + b"\x02\xff" + loop.stream(3)
    trace = open_trace(data, images=loop.images(), errors="raise")
    assert [len(part) for part in trace.iter_errors()] == [1]
    with pytest.raises(ptkit.DecodeError):
        list(trace.iter_errors(errors="raise"))


def test_what_is_cut_out_keeps_errors_and_gaps(many: Any) -> None:
    whole = many.branches()
    assert len(whole.errors) > 0
    for part in (whole[:3], whole[whole["taken"]], whole.where(kind="COND"), whole[["to_ip"]], whole[[1, 2]]):
        assert len(part.errors) == len(whole.errors)
        assert len(part.gaps) == len(whole.gaps)
    assert_same(concatenate([whole[:7], whole[7:]]), whole)


def test_code_is_decoded_once(many: Any) -> None:
    assert many.opened.session.kept_instructions == 0
    first = many.branches(threads=1)
    kept = many.opened.session.kept_instructions
    assert kept > 0
    assert_same(many.branches(threads=1), first)
    many.instructions(threads=1)
    assert many.opened.session.kept_instructions == kept


@pytest.mark.parametrize("table", [*TABLES, "edges"])
def test_threads_do_not_matter(many: Any, table: str) -> None:
    one = getattr(many, table)(threads=1)
    for threads in (2, 4, 9):
        assert_same(getattr(many, table)(threads=threads), one)


@pytest.mark.parametrize("rows", [3, 50, 10**6])
def test_parts_in_time_order_make_the_whole(many: Any, rows: int) -> None:
    whole = many.branches(order="time")
    plain = many.branches()
    assert len(whole) == len(plain)
    times = whole["tsc"][whole["time_known"]].astype(np.int64)
    assert len(set(whole["stream"].tolist())) == 4
    assert (np.diff(times) >= 0).all()
    for stream in range(4):
        one = plain.where(stream=stream)
        assert (whole.where(stream=stream)["offset"] == one["offset"]).all()
    assert_same(concatenate(list(many.iter_branches(order="time", rows=rows))), whole)


def test_merged_order_shows_only_what_was_asked_for(many: Any) -> None:
    assert many.branches(order="time", columns=["from_ip"]).columns == ("from_ip",)


def test_reuse_shares_memory(loop_trace: Any) -> None:
    parts = loop_trace.iter_branches(rows=100, reuse=True, columns=["from_ip"])
    first, second = next(parts), next(parts)
    assert np.shares_memory(first["from_ip"], second["from_ip"])
    with pytest.raises(ValueError, match="read-only"):
        second["from_ip"][0] = 1


def test_parts_that_are_kept_stay(loop_trace: Any) -> None:
    """Memory of parts is used again once no part refers to it."""
    parts = list(loop_trace.iter_branches(reuse=True, columns=["from_ip", "to_ip"]))
    before = parts[-1]["from_ip"].copy()
    for _ in range(3):
        for part in loop_trace.iter_branches(reuse=True, columns=["to_ip", "from_ip"]):
            assert not np.shares_memory(part["from_ip"], parts[-1]["from_ip"])
    assert (parts[-1]["from_ip"] == before).all()
    kept = parts[-1]["from_ip"]
    address = kept.ctypes.data
    del parts, kept, part
    again = [next(loop_trace.iter_branches(reuse=True, columns=["from_ip", "to_ip"])) for _ in range(3)]
    assert address in [part["from_ip"].ctypes.data for part in again]


@pytest.mark.parametrize("table", ["branches", "blocks", "instructions"])
@pytest.mark.parametrize("rows", [10, 15_000, 100_000])
def test_more_rows_than_there_is_room_for(
    open_trace: Any, loop: Any, packets: Any, table: str, rows: int
) -> None:
    """Packets that stand for more direct jumps than a part has rows, and than its memory has room for."""
    base, jumps = 0x400000, 10_000 if rows == 10 else 60_000
    code = b"\xeb\x00" * jumps + b"\xff\xe0"  # jmp to the next one, in the end jmp rax
    data = loop.header(None, 1000) + packets.pge(base) + packets.tip(base) * 4
    trace = open_trace(data, images=[{base: code}])
    whole = getattr(trace, table)()
    assert len(whole) > 3 * jumps
    parts = getattr(trace, f"iter_{table}")(rows=rows, reuse=True)
    assert_same(concatenate([part[np.arange(len(part))] for part in parts]), whole)


def test_packets_in_bulk_are_those_one_by_one(many: Any) -> None:
    """A selection makes the reader look at each packet."""
    whole = many.packets()
    known = whole[whole["time_known"]]
    assert_same(many.packets(time=(0, None)), known)
    assert len(np.unique(known["tsc"])) > 4
    for columns in (["tsc", "tsc_error"], ["tsc_source", "kind"], ["flags"]):
        bulk = many.packets(columns=columns)
        for name in columns:
            assert np.array_equal(bulk[name], whole[name]), name


def test_rows_out_of_range_are_refused(loop_trace: Any) -> None:
    for rows in (0, -1, True, 2.5):
        with pytest.raises(ptkit.ConfigError, match="rows="):
            loop_trace.iter_branches(rows=rows)


def test_errors_raise_ends_at_the_first_error(many: Any) -> None:
    with pytest.raises(ptkit.DecodeError, match="stream 2") as caught:
        many.branches(errors="raise")
    assert caught.value.stream == 2
    assert caught.value.code == int(many.errors["code"][0])
    assert caught.value.offset == int(many.errors["offset"][0])
    assert len(many.branches(stream=[0, 1], errors="raise")) > 0


_GROWTH = """
import resource, sys, warnings
sys.path.insert(0, sys.argv[1])
warnings.simplefilter("ignore")
from conftest import LoopProgram
import ptkit
trace = ptkit.open(LoopProgram.stream(int(sys.argv[2])), images=LoopProgram.images())
rows = sum(len(part) for part in trace.iter_branches(rows=20000, reuse=True))
print(rows, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def _peak(rounds: int) -> tuple[int, int]:
    tests = Path(__file__).resolve().parents[2]
    command = [sys.executable, "-c", _GROWTH, str(tests), str(rounds)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    rows, peak = map(int, done.stdout.split())
    return rows, peak


def test_memory_of_parts_does_not_grow() -> None:
    few_rows, few = _peak(20_000)
    many_rows, many = _peak(320_000)
    assert many_rows == 16 * few_rows
    stream = 3_200  # KiB that the longer stream itself takes more: 300,000 rounds of ten bytes, and its parts
    columns = (many_rows - few_rows) * 38 // 1024
    assert columns > 70_000  # what keeping all rows would take
    assert many - few < stream * 10 + 8_000 < columns
