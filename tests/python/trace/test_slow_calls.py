"""Slow calls of a function: compared with fast ones, counted by length, and looked at."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compiling import build

import ptkit

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
    assert (len(found.slow), len(found.fast)) == (SLOW, REQUESTS - SLOW)
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


def test_lines_and_edges_have_the_extra_instructions(trace: Any) -> None:
    found = trace.compare("handle", slow=0.999)
    assert found.sampled == (SLOW, 1000)
    source = (Path(__file__).parents[2] / "programs" / "slow.c").read_text().splitlines()
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
