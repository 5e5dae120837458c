"""Any damage ends in error rows; any way to read a stream gives the same columns."""

from __future__ import annotations

import warnings
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ptkit
from ptkit import _core
from ptkit.table import concatenate

TABLES = ("packets", "branches", "blocks", "instructions", "events", "errors", "gaps")
FLOW = ("branches", "blocks", "instructions", "events")
RELAXED = settings(
    deadline=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def opened(data: Any, **options: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ptkit.PtkitWarning)
        return ptkit.open(data, **options)


def rows_of(trace: Any, table: str) -> Any:
    result = getattr(trace, table)
    return result() if callable(result) else result


def assert_same(one: Any, other: Any) -> None:
    assert len(one) == len(other)
    for name in one.available:
        assert np.array_equal(one[name], other[name]), name


@pytest.fixture(scope="module")
def stream(loop: Any, packets: Any) -> bytes:
    """A stream with most shapes: timing, headers, an overflow, an error."""
    good = loop.stream(30, psb_every=7)
    overflow = packets.OVF + packets.fup(loop.BASE) + packets.tnt("10")
    return (
        good
        + loop.header(loop.BASE, 9000)
        + overflow
        + b"\x02\xff"
        + loop.stream(10, psb_every=4, tsc=10_000)
    )


@RELAXED
@given(cuts=st.lists(st.integers(0, 10_000), max_size=6))
def test_any_split_into_parts(stream: bytes, loop: Any, cuts: list[int]) -> None:
    limits = sorted({min(cut, len(stream)) for cut in cuts} | {0, len(stream)})
    parts = [stream[a:b] for a, b in pairwise(limits)]
    whole, split = opened(stream, images=loop.images()), opened(parts, images=loop.images())
    for table in TABLES:
        assert_same(rows_of(split, table), rows_of(whole, table))


@RELAXED
@given(rows=st.integers(1, 2000), reuse=st.booleans(), table=st.sampled_from(("packets", *FLOW)))
def test_any_number_of_rows(stream: bytes, loop: Any, rows: int, reuse: bool, table: str) -> None:
    trace = opened(stream, images=loop.images())
    whole = rows_of(trace, table)
    parts = []
    for part in getattr(trace, f"iter_{table}")(rows=rows, reuse=reuse):
        copied = part[np.arange(len(part))]
        copied.errors, copied.gaps = part.errors, part.gaps
        parts.append(copied)
    joined = concatenate(parts)
    assert_same(joined, whole)
    assert_same(joined.errors, whole.errors)
    assert_same(joined.gaps, whole.gaps)


@RELAXED
@given(sizes=st.lists(st.integers(1, 25), min_size=1, max_size=5), threads=st.integers(1, 8))
def test_any_number_of_threads(loop: Any, sizes: list[int], threads: int) -> None:
    bundle = ptkit._core.Bundle()
    bundle.add_code(loop.BASE, loop.CODE)
    for number, size in enumerate(sizes):
        bundle.add_stream(loop.stream(size, tsc=1000 + number), tid=number, pid=1)
    trace = ptkit.Trace(bundle, ptkit.decode.Settings())
    for table in (*FLOW, "packets", "edges"):
        assert_same(getattr(trace, table)(threads=threads), getattr(trace, table)(threads=1))


def survive(data: bytes, loop: Any) -> None:
    """Every table of damaged bytes is a table, and what was lost is told."""
    for resync in ("ip", "psb"):
        trace = opened(data, images=loop.images(), resync=resync)
        for table in TABLES:
            result = rows_of(trace, table)
            assert len(repr(result)) > 0
        assert len(trace.errors.messages()) == len(trace.errors)
        assert len(trace.gaps.messages()) == len(trace.gaps)
    table = ptkit.packets(data)
    ends = table["offset"] + table["size"]
    assert (ends <= len(data)).all()
    assert (table["offset"][1:] >= ends[:-1]).all()
    # Every byte is part of a packet, or lies in a gap.
    gaps = table.gaps
    assert int(table["size"].sum()) + int((gaps["end"] - gaps["begin"]).sum()) == len(data)


@RELAXED
@given(end=st.integers(1, 10_000))
def test_any_truncated_stream(stream: bytes, loop: Any, end: int) -> None:
    survive(stream[: min(end, len(stream))], loop)


@RELAXED
@given(flips=st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 7)), min_size=1, max_size=12))
def test_any_flipped_bits(stream: bytes, loop: Any, flips: list[tuple[int, int]]) -> None:
    damaged = bytearray(stream)
    for offset, bit in flips:
        damaged[offset % len(damaged)] ^= 1 << bit
    survive(bytes(damaged), loop)


@RELAXED
@given(data=st.binary(min_size=1, max_size=300))
def test_any_bytes(data: bytes, loop: Any) -> None:
    survive(data, loop)


@RELAXED
@given(code=st.binary(min_size=1, max_size=64), table=st.sampled_from(FLOW))
def test_any_code(stream: bytes, loop: Any, code: bytes, table: str) -> None:
    trace = opened(stream, images=[{loop.BASE: code}])
    assert_same(concatenate(list(getattr(trace, f"iter_{table}")(rows=64))), rows_of(trace, table))
    assert len(trace.errors.messages()) == len(trace.errors)
    instructions, blocks = trace.instructions(), trace.blocks()
    # What is said to have been executed is code that is there, and nothing is executed twice or not at all.
    ends = instructions["ip"] + instructions["size"]
    assert (instructions["ip"] >= loop.BASE).all()
    assert (ends <= loop.BASE + len(code)).all()
    assert int(blocks["instructions"].sum()) == len(instructions)
    assert int(blocks["size"].sum()) == int(instructions["size"].sum())
    for ip, size, mode in {*zip(*(instructions[n].tolist() for n in ("ip", "size", "mode")), strict=True)}:
        assert _core.instruction_size(code[ip - loop.BASE :], mode) == size


@RELAXED
@given(low=st.integers(0xFFE, 0x1008), size=st.integers(1, 8), seed=st.integers(0, 2**32))
def test_selection_is_a_mask_of_the_whole(stream: bytes, loop: Any, low: int, size: int, seed: int) -> None:
    trace = opened(stream, images=loop.images())
    whole = trace.instructions()
    mask = (whole["ip"] >= low) & (whole["ip"] < low + size)
    assert_same(trace.instructions(ip=(low, low + size)), whole[mask])
    generator = np.random.default_rng(seed)
    names = [name for name in whole.columns if generator.integers(2)]
    chosen = trace.instructions(columns=names)
    for name in names:
        assert np.array_equal(chosen[name], whole[name]), name
