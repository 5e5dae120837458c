"""Column `instruction`: how many instructions of the stream came before a row, whatever way it is decoded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import ptk_chunks
import pytest
from damage import damaged

import ptkit
from ptkit.table import concatenate
from ptkit.trace.opening import index as index_module

TABLES = ("branches", "blocks", "instructions")
COLUMNS = {
    "branches": ["from_ip", "kind", "from_known", "instruction"],
    "blocks": ["ip", "instructions", "instruction"],
    "instructions": ["ip", "instruction"],
}
NOT_COUNTED = [ptkit.BranchKind.ASYNC, ptkit.BranchKind.TX_ABORT, ptkit.BranchKind.UNKNOWN]


@pytest.fixture(params=[0, 40], ids=["whole", "damaged"])
def stream(request: Any, loop: Any) -> Any:
    return damaged(loop.stream(9000), request.param)


def read(trace: Any, table: str, **query: Any) -> Any:
    return getattr(trace, table)(columns=COLUMNS[table], **query)


def assert_same(some: Any, others: Any) -> None:
    assert len(some) == len(others)
    for name in others.columns:
        assert np.array_equal(some[name], others[name]), name


def test_instruction_column_is_on_demand(loop_trace: Any) -> None:
    for table in TABLES:
        assert "instruction" not in getattr(loop_trace, table)().columns
        with pytest.raises(ptkit.ColumnError, match="was not asked for"):
            getattr(loop_trace, table)()["instruction"]
    branches = loop_trace.branches(columns=["instruction"])
    assert branches.columns == ("instruction",)
    assert branches["instruction"].dtype == np.int64
    assert branches.to_pandas()["instruction"].tolist() == branches["instruction"].tolist()
    for side in (branches.errors, branches.gaps):
        assert "tsc_estimate" not in side.columns


@pytest.mark.parametrize("engine", ["ptkit", "simple", "libipt"])
def test_instruction_column_counts_earlier_instructions(
    open_trace: Any, loop: Any, stream: Any, engine: str
) -> None:
    if engine not in ptkit._core.engines():
        pytest.skip(f"no engine {engine} in this build")
    trace = open_trace(stream, images=loop.images(), engine=engine)
    instructions = read(trace, "instructions")
    assert np.array_equal(instructions["instruction"], np.arange(len(instructions)))
    blocks = read(trace, "blocks")
    counts = blocks["instructions"].astype(np.int64)
    assert np.array_equal(blocks["instruction"], np.cumsum(counts) - counts)
    branches = read(trace, "branches")
    counted = branches["from_known"] & ~np.isin(branches["kind"], NOT_COUNTED)
    assert counted.sum() > 10_000
    assert np.array_equal(instructions["ip"][branches["instruction"][counted]], branches["from_ip"][counted])
    assert (np.diff(branches["instruction"].astype(np.int64)) >= 0).all()


@pytest.mark.parametrize("table", TABLES)
def test_the_fast_path_says_the_same(open_trace: Any, loop: Any, stream: Any, table: str) -> None:
    fast, simple = (open_trace(stream, images=loop.images(), engine=engine) for engine in ("ptkit", "simple"))
    assert_same(read(fast, table, threads=1), read(simple, table))


@pytest.mark.parametrize("table", TABLES)
def test_segments_say_the_same(open_trace: Any, loop: Any, table: str) -> None:
    trace = open_trace(damaged(loop.stream(30_000), 20), images=loop.images())
    whole = read(trace, table, threads=1)
    assert_same(read(trace, table, threads=3), whole)
    for reuse in (False, True):
        parts = getattr(trace, f"iter_{table}")(columns=COLUMNS[table], threads=3, rows=7777, reuse=reuse)
        assert_same(concatenate([part[np.arange(len(part))] for part in parts]), whole)


def test_selections_say_the_same(open_trace: Any, loop: Any, stream: Any) -> None:
    trace = open_trace(stream, images=loop.images())
    whole = read(trace, "branches")
    calls = whole["kind"] == ptkit.BranchKind.JUMP_INDIRECT
    for threads in (1, 3):
        assert_same(read(trace, "branches", kind="JUMP_INDIRECT", threads=threads), whole[calls])
    every = read(trace, "instructions")
    one = read(trace, "instructions", ip=(loop.JMP, loop.JMP + 1))
    assert 0 < len(one) < len(every)
    assert_same(one, every[every["ip"] == loop.JMP])


@pytest.mark.parametrize("table", TABLES)
def test_an_index_says_the_same(
    open_trace: Any, loop: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table: str
) -> None:
    monkeypatch.setattr(index_module, "SEGMENT", 1024)
    path = tmp_path / "loop.pt"
    path.write_bytes(loop.stream(8000))
    whole = open_trace(path, images=loop.images(), index=False)
    indexed = open_trace(path, images=loop.images())
    assert indexed.index(save=False).segments > 10
    times = (500_000, 512_000)
    some = read(indexed.between(*times), table)
    tsc = getattr(whole, table)(columns=["tsc", "time_known"])
    inside = tsc["time_known"] & (tsc["tsc"] >= times[0]) & (tsc["tsc"] < times[1])
    assert 0 < len(some) == inside.sum()
    assert_same(some, read(whole, table)[inside])


def test_instruction_column_follows_the_order_of_time(open_trace: Any, loop: Any, tmp_path: Path) -> None:
    chunks = [
        ptk_chunks.process(n, 70 + n, 1, loop.stream(300, tsc=1000 + n, step=100 + n)) for n in range(2)
    ]
    chunks.append(ptk_chunks.code(loop.BASE, loop.CODE))
    trace = open_trace(ptk_chunks.write(tmp_path / "two.ptk", chunks))
    whole = trace.branches(columns=["instruction", "stream"], order="time")
    for stream in range(2):
        alone = trace.branches(columns=["instruction"], stream=stream)["instruction"]
        assert len(alone) > 1000
        assert np.array_equal(whole["instruction"][whole["stream"] == stream], alone)
