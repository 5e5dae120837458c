"""Edges by phases of time and instructions: the counts are those of branches that are counted one by one."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from executed_parts import executed_part

import ptkit
from ptkit import capture
from ptkit.errors import ConfigError

COLUMNS = ("from_ip", "to_ip", "kind", "count", "space")


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A program with some hundred PSBs, and times."""
    if not any(one.name == "emulator" and one.available for one in capture.probe()):
        pytest.skip("no emulator here")
    folder = tmp_path_factory.mktemp("phases")
    text = folder / "text"
    text.write_text("".join(f"{i * i % 9973} the quick {i} brown fox\n" for i in range(3000)))
    ptkit.record(["gzip", "-c", str(text)], output=folder / "gzip.ptk", backend="emulator", quiet=True)
    return str(folder / "gzip.ptk")


def counted(branches: ptkit.Table, limits: list[int], by: str = "tsc") -> list[Counter[tuple[int, ...]]]:
    """Edges of each phase by the rows of branches."""
    known = branches["from_known"] & branches["to_known"]
    if by == "tsc":
        known &= branches["time_known"]
    columns = (branches[name][known].tolist() for name in ("from_ip", "to_ip", "kind", "space"))
    bins = (np.searchsorted(np.array(limits, np.uint64), branches[by][known], side="right") - 1).tolist()
    found: list[Counter[tuple[int, ...]]] = [Counter() for _ in limits[1:]]
    for number, *edge in zip(bins, *columns, strict=True):
        if 0 <= number < len(found):
            found[number][tuple(edge)] += 1
    return found


def phases_of(edges: ptkit.Table, count: int) -> list[Counter[tuple[int, ...]]]:
    found: list[Counter[tuple[int, ...]]] = [Counter() for _ in range(count)]
    rows = zip(
        *(edges[name].tolist() for name in ("bin", "from_ip", "to_ip", "kind", "space", "count")), strict=True
    )
    for number, *edge, times in rows:
        assert tuple(edge) not in found[number]
        found[number][tuple(edge)] = times
    return found


def equal(one: ptkit.Table, other: ptkit.Table) -> bool:
    return all(np.array_equal(one[name], other[name]) for name in COLUMNS)


@pytest.mark.parametrize("indexed", [False, True])
@pytest.mark.parametrize("count", [1, 2, 7, 50])
def test_phases_are_those_of_branches(recording: str, indexed: bool, count: int) -> None:
    trace = ptkit.open(recording)
    if indexed:
        trace.index(save=False)
    edges = trace.edges(by="time", bins=count)
    assert trace.info.first_tsc is not None
    assert trace.info.last_tsc is not None
    begin, end = trace.info.first_tsc, trace.info.last_tsc + 1
    limits = [begin + (end - begin) * i // count for i in range(count + 1)]
    assert phases_of(edges, count) == counted(trace.branches(), limits)
    assert np.array_equal(edges["bin"], np.sort(edges["bin"]))


NUMBERED = ("from_ip", "to_ip", "kind", "flags", "tsc", "instruction")


@pytest.mark.parametrize("engine", ["ptkit", "simple"])
@pytest.mark.parametrize("count", [1, 2, 7, 50])
def test_phases_by_instructions_are_those_of_branches(recording: str, engine: str, count: int) -> None:
    trace = ptkit.open(recording, engine=engine)
    branches = trace.branches(columns=NUMBERED)
    end = int(trace.instructions(columns=["instruction"])["instruction"][-1]) + 2
    edges = trace.edges(by="instructions", bins=count)
    limits = [end * i // count for i in range(count + 1)]
    assert phases_of(edges, count) == counted(branches, limits, "instruction")
    assert int(edges["count"].sum()) == int(trace.edges()["count"].sum())


def test_phases_by_instructions_of_a_part(recording: str) -> None:
    trace = ptkit.open(recording)
    part = executed_part(trace, 20, 60)
    branches = part.branches(columns=NUMBERED)
    begin, end = int(branches["instruction"].min()), int(branches["instruction"].max()) + 1
    limits = [begin + (end - begin) * i // 3 for i in range(4)]
    edges = part.edges(by="instructions", bins=3)
    assert phases_of(edges, 3) == counted(branches, limits, "instruction")
    assert equal(edges, trace.edges(by="instructions", bins=limits, time=part._bound["time"]))
    # Limits that leave out both ends, and lie at numbers of branches.
    numbers = np.unique(branches["instruction"]).tolist()
    limits = [numbers[len(numbers) // 4], numbers[len(numbers) // 2], numbers[len(numbers) // 4 * 3] + 1]
    assert phases_of(part.edges(by="instructions", bins=limits), 2) == counted(
        branches, limits, "instruction"
    )
    chosen = part.edges(by="instructions", bins=limits, kind="cond")
    assert set(chosen["kind"].tolist()) == {ptkit.BranchKind.COND}
    with pytest.raises(ConfigError, match="edges by instructions: nothing is selected"):
        trace.between(percent=(20, 20)).edges(by="instructions", bins=3)


@pytest.mark.parametrize("engine", ["ptkit", "simple"])
def test_a_phase_is_that_of_between(recording: str, engine: str) -> None:
    trace = ptkit.open(recording, engine=engine)
    first, last = trace.info.first_tsc, trace.info.last_tsc
    assert first is not None
    assert last is not None
    limits = [first - 5, first, first + (last - first) // 3, first + (last - first) // 3 + 1, last + 9]
    edges = trace.edges(by="time", bins=limits)
    for number, (begin, end) in enumerate(pairwise(limits)):
        if end <= first:
            assert not len(edges[edges["bin"] == number])
            continue
        assert equal(edges[edges["bin"] == number], trace.between(begin, end).edges()), number


def test_between_counts_its_branches(recording: str) -> None:
    whole = ptkit.open(recording)
    whole.index(save=False)
    for low, high in ((0, 100), (0, 30), (33, 34), (50.5, 50.6), (99, 100)):
        part = whole.between(percent=(low, high))
        one = counted(part.branches(), [0, 2**64 - 1])
        edges = part.edges()
        assert (
            Counter(
                dict(
                    zip(
                        zip(*(edges[n].tolist() for n in ("from_ip", "to_ip", "kind", "space")), strict=True),
                        edges["count"].tolist(),
                        strict=True,
                    )
                )
            )
            == one[0]
        )


def test_phases_of_a_part_and_of_kinds(recording: str) -> None:
    trace = ptkit.open(recording)
    part = executed_part(trace, 20, 60)
    edges = part.edges(by="time", bins=4)
    assert int(edges["count"].sum()) == int(part.edges()["count"].sum())
    calls = trace.edges(by="time", bins=3, kind="call")
    assert set(calls["kind"].tolist()) == {ptkit.BranchKind.CALL}
    assert int(calls["count"].sum()) == int(trace.edges(kind="call")["count"].sum())
    taken = trace.edges(by="time", bins=3, taken=True)
    assert int(taken["count"].sum()) == int(trace.edges(taken=True)["count"].sum())


def test_streams_without_times_and_mistakes(packets: Any, recording: str) -> None:
    stream = packets.PSB + packets.MODE_64 + packets.PSBEND + packets.pge(0x1000) + packets.TIP_PGD
    timeless = ptkit.open(stream, images=[{0x1000: b"\x90\xff\xe0"}], cpu="6/142/9")
    with pytest.raises(ConfigError, match="no times"):
        timeless.edges(by="time", bins=4)
    assert timeless.edges(by="instructions", bins=4)["count"].tolist() == timeless.edges()["count"].tolist()
    trace = ptkit.open(recording)
    for options, words in (
        ({"by": "time"}, "take both"),
        ({"bins": 3}, "take both"),
        ({"by": "count", "bins": 3}, "by='count'"),
        ({"by": "time", "bins": 0}, "bins"),
        ({"by": "time", "bins": [5]}, "1 limits"),
        ({"by": "time", "bins": [5, 5]}, "ascend"),
        ({"columns": ["bin"]}, "choose phases"),
    ):
        with pytest.raises(ConfigError, match=words):
            trace.edges(**options)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="choose phases"):
        trace.iter_edges(columns=["bin"])


def test_several_streams(spaces: Any) -> None:
    """Streams of different spaces are counted together, phase by phase."""
    edges = spaces.edges(by="time", bins=2)
    alone = [spaces.edges(by="time", bins=2, stream=i) for i in range(3)]
    assert int(edges["count"].sum()) == sum(int(one["count"].sum()) for one in alone) > 0
    assert len(edges) == sum(map(len, alone))


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_each_stream_counts_its_own_instructions(spaces: Any, threads: int) -> None:
    branches = spaces.branches(columns=NUMBERED)
    longest = int(branches["instruction"].max())
    limits = [0, 1, longest // 2, longest + 2]
    edges = spaces.edges(by="instructions", bins=limits, threads=threads)
    assert phases_of(edges, 3) == counted(branches, limits, "instruction")
    every = spaces.edges(by="instructions", bins=5, threads=threads)
    assert int(every["count"].sum()) == int(spaces.edges()["count"].sum()) > 0
