"""Call stacks of any damaged stream: sums hold, and no frame spans a gap. Any form has the same frames."""

from __future__ import annotations

import warnings
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from call_bounds import false_counts, false_instructions
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ptkit

RELAXED = settings(
    deadline=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
MAIN, F, G = 0x1000, 0x1010, 0x1020
# main: call f; jmp rax. f: again: dec ecx; jnz again; call g; ret. g: test; jz leaves; call f; leaves: ret.
CODE = {
    MAIN: bytes.fromhex("e80b000000 ffe0"),
    F: bytes.fromhex("ffc9 75fc e807000000 c3"),
    G: bytes.fromhex("85c9 7405 e8e7ffffff c3"),
}
BEHIND_F, BEHIND_G, BEHIND_INNER = MAIN + 5, F + 9, G + 9


def stream(packets: Any, depths: list[int], compressed: bool) -> bytes:
    """`f()` and `g()` call each other to each of the depths, and return."""
    header = packets.PSB + packets.tsc(1000) + packets.MODE_64
    parts = [header, packets.PSBEND, packets.pge(MAIN)]

    def returns(to: int) -> bytes:
        return bytes(packets.tnt("1") if compressed else packets.tip(to))

    def call_f(depth: int) -> None:
        parts.append(packets.tnt("10"))  # jnz
        parts.append(packets.tnt("1" if depth == 0 else "0"))  # jz
        if depth > 0:
            call_f(depth - 1)
            parts.append(returns(BEHIND_INNER))
        parts.append(returns(BEHIND_G))

    for number, depth in enumerate(depths):
        if number % 3 == 2:
            parts.append(header.replace(packets.tsc(1000), packets.tsc(2000 + number)))
            parts.append(packets.fup(MAIN) + packets.PSBEND)
        call_f(depth)
        parts.append(returns(BEHIND_F) + packets.tip(MAIN))
    return b"".join(parts)


def opened(data: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ptkit.PtkitWarning)
        return ptkit.open(data, images=[CODE])


def assert_same(one: Any, other: Any, *but: str) -> None:
    assert len(one) == len(other)
    for name in set(one.available) - set(but):
        np.testing.assert_array_equal(one[name], other[name], err_msg=name)


DEPTHS = st.lists(st.integers(0, 12), min_size=1, max_size=12)


@RELAXED
@given(depths=DEPTHS)
def test_compressed_returns_give_the_same_frames(packets: Any, depths: list[int]) -> None:
    plain, compressed = (opened(stream(packets, depths, form)).calls() for form in (False, True))
    assert len(plain) == 1 + sum(2 * depth + 2 for depth in depths)
    assert_same(plain, compressed, "offset", "end_offset", "tsc", "tsc_error", "end_tsc", "end_tsc_error")
    assert plain["depth"].max() == 2 * max(depths) + 2
    assert plain["exact"][1:].all()


@RELAXED
@given(depths=DEPTHS, cuts=st.lists(st.integers(0, 10_000), max_size=6), compressed=st.booleans())
def test_any_split_into_parts(packets: Any, depths: list[int], cuts: list[int], compressed: bool) -> None:
    data = stream(packets, depths, compressed)
    limits = sorted({min(cut, len(data)) for cut in cuts} | {0, len(data)})
    split = opened([data[first:last] for first, last in pairwise(limits)])
    assert_same(split.calls(), opened(data).calls())


def survive(data: bytes) -> None:
    trace = opened(data)
    calls = trace.calls()
    assert calls["self_instructions"].sum() == trace.blocks()["instructions"].sum()
    assert sorted(calls["id"].tolist()) == list(range(len(calls)))
    row_of = np.argsort(calls["id"])
    inner = calls["parent_known"]
    outer = row_of[calls["parent"][inner].astype(np.int64)]
    assert (calls["depth"][inner] == calls["depth"][outer] + 1).all()
    assert (calls["instructions"][inner] <= calls["instructions"][outer]).all()
    gaps = trace.branches(columns=["offset"]).gaps
    for begin, end in zip(gaps["begin"].tolist(), gaps["end"].tolist(), strict=True):
        assert not ((calls["offset"] < begin) & (calls["end_offset"] > end)).any()
    functions = trace.functions()
    assert functions["count"].sum() == np.count_nonzero(calls["begin_seen"])
    assert functions["count"].sum() + functions["begin_unseen"].sum() == len(calls)
    assert false_counts(trace) == []
    assert false_instructions(trace) == []
    assert len(trace.stack_anomalies) <= len(trace.branches(columns=["kind"]))
    assert_windows_add_up(trace, functions)


def assert_windows_add_up(trace: Any, functions: Any) -> None:
    blocks = trace.blocks()
    times = blocks["tsc"].astype(np.int64)
    # A damaged TSC may lie anywhere, and time go back.
    is_within = (trace.info.first_tsc <= times) & (times <= trace.info.last_tsc)
    if not (blocks["time_known"] & is_within).all() or (np.diff(times) < 0).any():
        return
    limits = sorted(set(times[:: max(len(times) // 3, 1)].tolist()))[1:]
    count = instructions = 0
    for window in pairwise([None, *limits, None]):
        part = trace.functions(time=window)
        count += part["count"].sum()
        instructions += part["self_instructions"].sum()
        assert part["self_instructions"].sum() == trace.blocks(time=window)["instructions"].sum()
    assert instructions == functions["self_instructions"].sum()
    assert count == functions["count"].sum()


@pytest.fixture(scope="module")
def whole(packets: Any) -> dict[bool, bytes]:
    depths = [3, 0, 5, 1, 7, 2, 2, 9, 4]
    return {compressed: stream(packets, depths, compressed) for compressed in (False, True)}


@RELAXED
@given(
    flips=st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 7)), min_size=1, max_size=12),
    compressed=st.booleans(),
)
def test_any_flipped_bits(whole: dict[bool, bytes], flips: list[tuple[int, int]], compressed: bool) -> None:
    damaged = bytearray(whole[compressed])
    for offset, bit in flips:
        damaged[offset % len(damaged)] ^= 1 << bit
    survive(bytes(damaged))


@RELAXED
@given(begin=st.integers(0, 10_000), size=st.integers(1, 200), compressed=st.booleans())
def test_any_lost_bytes(whole: dict[bool, bytes], begin: int, size: int, compressed: bool) -> None:
    data = whole[compressed]
    begin %= len(data)
    survive(data[:begin] + data[begin + size :])
