"""Slow calls of a function: compared with fast ones, counted by length, and looked at."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compiling import build

import ptkit
from ptkit.analysis.slow_calls import choose_calls

REQUESTS, EVERY = 5000, 1000
SLOW = REQUESTS // EVERY


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("slow")
    return ptkit.record([str(build("slow", folder, "-g"))], output=folder / "slow.ptk")


@pytest.fixture(scope="module")
def handled(trace: Any) -> Any:
    return trace.calls(symbol="handle")


@pytest.mark.parametrize("slow", [0.999, 0.99, 300])
def test_what_slow_calls_do_comes_first(trace: Any, handled: Any, slow: float) -> None:
    found = trace.compare("handle", slow=slow)
    assert (found.function, found.by, found.calls) == ("handle", "instructions", REQUESTS)
    assert (len(found.slow), len(found.fast), len(found.left_out)) == (SLOW, REQUESTS - SLOW, 0)
    walk, load = found.functions[:2]
    assert (walk.kind, walk.name, load.name) == ("function", "walk", "load_page")
    walks = trace.calls(symbol="walk")
    lengths = np.sort(walks["instructions"])
    assert walk.extra == float(lengths[-1] - lengths[0])
    assert (walk.slow_count, walk.fast_count, load.slow_count, load.fast_count) == (1, 1, 1, 0)
    assert load.extra == load.slow == float(trace.calls(symbol="load_page")["instructions"][0])
    assert load.fast_example is None
    whole = float(found.slow["instructions"].mean() - found.fast["instructions"].mean())
    assert sum(one.extra for one in found.functions) == pytest.approx(whole)
    assert found.example(load.slow_example)["instructions"][0] == handled["instructions"].max()
    assert found.example(walk.fast_example)["instructions"][0] == handled["instructions"].min()


@pytest.fixture(scope="module")
def two_lengths(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("two_lengths")
    return ptkit.record([str(build("two_lengths", folder, "-O1"))], output=folder / "out.ptk")


def test_usual_lengths_are_not_slow(two_lengths: Any) -> None:
    found = two_lengths.compare("request")
    requests, heavy = (two_lengths.calls(symbol=name)["instructions"] for name in ("request", "heavy"))
    lengths = np.unique(requests)
    assert (len(lengths), len(heavy)) == (3, 5)  # two usual ones
    assert (found.calls, len(found.slow), len(found.left_out)) == (500, 5, 0)
    assert (found.fast_to, found.slow_from) == (lengths[0], lengths[2])
    assert (found.functions[0].name, found.functions[0].slow_count) == ("heavy", 1)
    assert found.functions[0].extra == heavy.mean()
    assert f"5 slow (from {lengths[2]:,} on)" in repr(found)


def test_calls_of_one_length_do_not_fill_a_share(two_lengths: Any) -> None:
    found = two_lengths.compare("request", slow=0.9, fast=0.4)
    requests = np.sort(two_lengths.calls(symbol="request")["instructions"])
    assert (len(found.slow), len(found.left_out)) == (5, 250 - 5)
    assert set(found.left_out["instructions"]) == {requests[-6]}
    assert found.fast_to == requests[0]
    two = two_lengths.compare("request", slow=0.996)  # of five that take the same
    assert (len(two.slow), len(two.left_out), two.slow_from) == (2, 3, requests[-1])


def test_what_throws_is_slow(tmp_path: Path) -> None:
    trace = ptkit.record([str(build("throwing", tmp_path, "-O1", "-g"))], output=tmp_path / "out.ptk")
    found = trace.compare("calc::evaluate")
    assert (found.calls, len(found.slow), len(found.fast)) == (500, 5, len(found.fast))
    assert (found.function, found.function_full) == ("calc::evaluate", "calc::evaluate(int)")
    thrown = {one.name: one for one in found.functions}
    assert (thrown["__cxa_throw"].slow_count, thrown["__cxa_throw"].fast_count) == (1, 0)
    calls = trace.calls()
    unwinder = np.asarray(calls["entry_module"] == "libgcc_s.so.1")
    in_unwinder = sum(one.extra for name, one in thrown.items() if "Unwind" in name or "libgcc" in name)
    assert 0 < in_unwinder <= calls["self_instructions"][unwinder].sum() / 5


@pytest.mark.parametrize(
    ("lengths", "slow", "expected"),
    [
        ([1] * 495 + [9] * 5, 0.99, [9] * 5),
        ([1] * 198 + [7, 9], 0.99, [7, 9]),
        ([1] * 98 + [7, 7], 0.99, [7]),  # one of both
        ([1] * 49 + [9], 0.99, [9]),  # at least one
        ([1] * 90 + [5] * 8 + [6, 7], 0.95, [6, 7]),
        ([1] * 90 + [5] * 8 + [6, 7], 0.9, [5] * 8 + [6, 7]),
        ([*range(100)], 0.43, [*range(50, 100)]),  # those up to the median are fast
        ([*range(1000)], 0.93, [*range(930, 1000)]),  # 1 - 0.93 is 0.06999999999999995
        ([*range(10)], 1.0, [9]),
    ],
)
def test_a_share_is_the_most_that_is_slow(lengths: list[int], slow: float, expected: list[int]) -> None:
    metric = np.random.default_rng(1).permutation(np.array(lengths, np.uint64))
    is_slow, is_fast, left_out = choose_calls(metric, slow, 0.5, "instructions")
    assert sorted(metric[is_slow].tolist()) == expected
    assert not (is_slow & is_fast).any()
    assert len(set(metric[left_out].tolist())) <= 1


def test_patterns_are_of_one_function(two_lengths: Any) -> None:
    assert two_lengths.compare("req*t").function == "request"
    with pytest.raises(
        ptkit.ConfigError, match="is 2 functions that were called: give one of 'request', 'heavy'"
    ):
        two_lengths.compare("[hr]e[aq][vu]*")
    with pytest.raises(ptkit.SymbolError, match=r"no function 'nothing\*' was called"):
        two_lengths.compare("nothing*")
    with pytest.raises(ptkit.ConfigError, match="takes the name of a function"):
        two_lengths.compare(7)
    with pytest.raises(ptkit.ConfigError, match=r"two runs are compared by ptkit\.diff\(a, b\)"):
        two_lengths.compare(two_lengths)


def test_lines_and_edges_have_the_extra_instructions(trace: Any) -> None:
    found = trace.compare("handle", slow=0.999)
    assert found.sampled == (SLOW, 1000)
    source = (Path(__file__).parents[2] / "programs" / "times" / "slow.c").read_text().splitlines()
    texts = [source[int(one.name.split(":")[1]) - 1] for one in found.lines if one.extra > 0]
    assert "sum += first->value" in texts[0] or "first = first->next" in texts[0] or "for (" in texts[0]
    loop = found.edges[0]
    assert loop.name.count("walk") == 2
    assert (loop.slow_count, loop.fast_count) == (79, 7)
    entered = next(one for one in found.edges if one.name.endswith("-> load_page"))
    assert (entered.slow_count, entered.fast_count, entered.fast_example) == (1, 0, None)
    extra = sum(one.extra for one in found.edges)
    # Blocks behind the edges are all but those that the calls begin with.
    assert extra == pytest.approx(sum(one.extra for one in found.functions), abs=8)


def test_masks_limits_and_times(trace: Any, handled: Any) -> None:
    mask = np.arange(REQUESTS) % EVERY == EVERY - 1
    found = trace.compare("handle", slow=mask, fast=~mask, sample=0)
    assert (len(found.slow), len(found.fast)) == (SLOW, REQUESTS - SLOW)
    assert found.lines == found.edges == ()
    by_time = trace.compare("handle", by="time", slow=0.9, fast=0.5)
    lengths = handled.lengths("time")[0]
    assert by_time.slow.lengths("time")[0].min() > np.median(lengths)
    assert [one.kind for one in by_time.times] == ["untraced"] * len(by_time.times)


def test_calls_that_cannot_be_compared(trace: Any) -> None:
    with pytest.raises(ptkit.SymbolError, match="did you mean 'handle'"):
        trace.compare("handel")
    with pytest.raises(ptkit.ConfigError, match="none of 5,000 calls is slow"):
        trace.compare("handle", slow=10**6)
    with pytest.raises(ptkit.ConfigError, match="none of 1 calls is slow"):
        trace.compare("main")
    with pytest.raises(ptkit.ConfigError, match="a share lies in 0 to 1"):
        trace.compare("handle", slow=99.0)
    with pytest.raises(ptkit.ConfigError, match="mask of bool for 5,000 calls"):
        trace.compare("handle", slow=[True])
    with pytest.raises(ptkit.ConfigError, match="time: calls are compared with all"):
        trace.compare("handle", time=(0, 2**63))
    with pytest.raises(ptkit.ConfigError, match="no slow or fast call"):
        trace.compare("handle").example(0)


def test_histogram_counts_each_call_once(handled: Any) -> None:
    for of, unit in (("instructions", "instructions"), ("time", "TSC ticks")):
        found = handled.histogram(of)
        lengths, known = handled.lengths(of)
        assert (found.unit, found.unknown) == (unit, int((~known).sum()))
        assert found.counts.sum() == known.sum()
        assert found.totals.sum() == lengths[known].sum()
        assert found.limits[0] <= lengths[known].min()
        assert found.limits[-1] > lengths[known].max()
    limits = [0, 100, 10_000]
    found = handled.histogram(bins=limits)
    assert found.counts.tolist() == [REQUESTS - SLOW, SLOW]
    short = handled["instructions"] < 100
    assert found.totals.tolist() == [handled["instructions"][part].sum() for part in (short, ~short)]
    assert handled[:0].histogram().counts.tolist() == [0]
    with pytest.raises(ptkit.ConfigError, match="the limits are 0 to 10"):
        handled.histogram(bins=[0, 10])
    with pytest.raises(ptkit.ConfigError, match="ascending limits"):
        handled.histogram(bins=[5, 5])


def test_slowest_calls_lead_to_their_rows(trace: Any, handled: Any) -> None:
    slowest = handled.slowest(SLOW + 1)
    assert (np.diff(slowest["instructions"].astype(np.int64)) <= 0).all()
    assert slowest["id"][:SLOW].tolist() == sorted(slowest["id"][:SLOW].tolist())
    begin, end = slowest.spans()[0].tolist()
    branches = trace.between(begin, end).branches(tid=int(slowest["tid"][0]))
    assert "load_page" in branches["to_symbol"].tolist()
    assert len(handled.slowest(10**6, "time")) == len(handled)
