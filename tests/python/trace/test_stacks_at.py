"""What streams did at one moment: PTWRITEs with their frames, rows around a time, frames at times."""

from __future__ import annotations

from bisect import bisect_left
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compiling import build
from executed_parts import time_at

import ptkit
from ptkit import StackFlag

MAIN, F, G = 0x1000, 0x1010, 0x1020
# main: call f; jmp rax. f: ptwrite eax; call g; ret. g: ptwrite rcx; ret.
CODE = bytes.fromhex("e80b000000ffe0").ljust(0x10, b"\x90")
CODE += bytes.fromhex("f30faee0e807000000c3").ljust(0x10, b"\x90")
CODE += bytes.fromhex("f3480faee1c3")


@pytest.fixture
def written(open_trace: Any, packets: Any, loop: Any) -> Any:
    """Two streams, of five and three rounds of the program above."""

    def stream(rounds: int) -> bytes:
        turn = b"\x02\x92" + (7).to_bytes(4, "little") + packets.fup(F)
        turn += b"\x02\xb2" + (2**40).to_bytes(8, "little") + packets.fup(G)
        turn += packets.tip(F + 9) + packets.tip(MAIN + 5) + packets.tip(MAIN)
        return bytes(loop.header(None, 1000) + packets.pge(MAIN) + turn * rounds)

    bundle = ptkit._core.Bundle()
    bundle.add_code(MAIN, CODE)
    for tid, rounds in enumerate((5, 3), start=1):
        bundle.add_stream(stream(rounds), pid=tid, tid=tid)
    return ptkit.Trace(bundle, ptkit.decode.Settings())


def test_ptwrites_are_the_events_of_this_kind(written: Any) -> None:
    events, found = written.events(kind="PTWRITE"), written.ptwrites()
    assert found["value"].tolist() == [7, 2**40] * 8 == events["payload"].tolist()
    assert found["size"].tolist() == [4, 8] * 8
    assert found["ip"].tolist() == [F, G] * 8
    assert found.named("ip") == events.named("ip")
    for name in ("tsc", "tsc_error", "offset", "instruction", "stream", "tid"):
        assert (found[name] == events[name]).all(), name
    assert written.ptwrites(columns=["value"], tid=2)["value"].tolist() == [7, 2**40] * 3
    assert written.ptwrites(ip=G)["value"].tolist() == [2**40] * 8
    merged = written.ptwrites(order="time")
    assert sorted(merged["instruction"].tolist()) == sorted(found["instruction"].tolist())
    with pytest.raises(ptkit.ConfigError, match="kind selects"):
        written.ptwrites(kind="CALL")


def test_ptwrites_have_their_frames(written: Any) -> None:
    found, calls = written.ptwrites(), written.calls()
    assert found["frame_known"].all()
    assert found["innermost"].all()
    rows = {number: row for row, number in enumerate(calls["id"].tolist())}
    frames = calls[np.array([rows[number] for number in found["frame"].tolist()])]
    assert frames["entry_ip"].tolist() == found["entry_ip"].tolist() == [F, G] * 8
    assert (frames["depth"] == found["depth"]).all()
    assert (frames["tid"] == found["tid"]).all()
    # Those of g are frames of the round: each f encloses the next g.
    assert frames["parent"][1::2].tolist() == frames["id"][::2].tolist()
    assert len(set(found["frame"].tolist())) == 16
    one = written.ptwrites(stream=1)
    assert one["frame"].tolist() == (found["frame"][found["stream"] == 1] - 11).tolist()
    assert one["function"].tolist() == [hex(F), hex(G)] * 3


def test_a_packet_without_an_ip_is_of_the_next_ptwrite(open_trace: Any, packets: Any, loop: Any) -> None:
    stream = loop.header(None, 1000) + packets.pge(MAIN) + b"\x02\x12" + bytes(4) + packets.tip(F + 9)
    found = open_trace(stream, images=[{MAIN: CODE}]).ptwrites()
    assert found["ip"].tolist() == [F]
    assert found["entry_ip"].tolist() == [F]
    assert found["innermost"].tolist() == [True]
    unknown = open_trace(stream).ptwrites()  # without code
    assert unknown["value"].tolist() == [0]
    assert unknown["ip_known"].tolist() == unknown["innermost"].tolist() == [False]


def test_traces_without_ptwrites_have_no_rows(loop_trace: Any) -> None:
    found = loop_trace.ptwrites()
    assert len(found) == 0
    assert found["value"].dtype == np.uint64
    assert found["function"].tolist() == []


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("moments")
    recording = folder / "threads.ptk"
    ptkit.record([str(build("threads", folder)), "60"], output=recording)
    return recording


@pytest.fixture(scope="module")
def trace(recorded: Path) -> Any:
    return ptkit.open(recorded)


def ends(table: Any) -> Any:
    """Both ends of the time of each row; none: the row has no time."""
    return table["tsc"], table["tsc"] + table["tsc_error"], table["time_known"]


def overlap(trace: Any, low: int, high: int) -> Any:
    rows = trace.branches(order="time")
    first, last, known = ends(rows)
    return rows[known & (first <= high) & (last >= low)]


def moments(trace: Any) -> list[tuple[int, int]]:
    """Times of rows, and windows: the run may have waited at any other time."""
    span = trace.info.last_tsc - trace.info.first_tsc
    middle, late = time_at(trace, 50), time_at(trace, 80)
    return [(middle, 0), (middle, span // 1000), (late, span // 50), (middle, span)]


@pytest.mark.parametrize("number", range(4))
@pytest.mark.parametrize("indexed", [False, True])
def test_around_has_the_rows_that_overlap(recorded: Path, trace: Any, number: int, indexed: bool) -> None:
    time, window = moments(trace)[number]
    if indexed:
        trace = ptkit.open(recorded)
        trace.index(save=False)
    found = trace.around(time, window)
    expected = overlap(trace, time - window, time + window)
    assert len(found) == len(expected) > 0
    for name in (*expected.columns, "stream", "tid"):
        np.testing.assert_array_equal(found[name], expected[name], err_msg=name)
    few = trace.around(time, window, columns=["to_symbol"], stream=1)
    assert few.columns == ("to_symbol", "unordered")
    assert few["to_symbol"].tolist() == found[found["stream"] == 1]["to_symbol"].tolist()


def test_around_marks_rows_of_which_the_order_is_not_known(trace: Any) -> None:
    time, window = moments(trace)[3]
    found = trace.around(time, window)
    first, last, _ = ends(found)
    streams = found["stream"]
    for row in range(0, len(found), max(len(found) // 300, 1)):
        others = streams != streams[row]
        meets = (others & (first <= last[row]) & (last >= first[row])).any()
        assert bool(found["unordered"][row]) == bool(meets), row
    assert len(set(streams.tolist())) > 1
    assert "unordered" in found.to_pandas().columns


def test_around_has_the_errors_and_gaps_of_the_window(open_trace: Any, loop: Any) -> None:
    damaged = loop.stream(50, tsc=1000) + b"\x02\xff" + loop.stream(50, tsc=101_000)
    trace = open_trace(damaged + b"\x02\xff" + loop.stream(50, tsc=901_000), images=loop.images())
    assert len(trace.errors) == 2
    # Nothing is known of when each error was but that it lies between two loops.
    early, late = (trace.around(time, 1_000) for time in (50_000, 500_000))
    assert not trace.around(103_000, 500).errors
    assert [len(early.errors), len(late.errors)] == [1, 1]
    assert early.errors["offset"].tolist() + late.errors["offset"].tolist() == trace.errors["offset"].tolist()


def test_around_takes_clocks(trace: Any) -> None:
    time, window = moments(trace)[1]
    ns = trace.info.perf_time is not None or trace.info.tsc_hz is not None
    assert ns
    found = trace.around(time, window)
    rows = trace.around(int(found["time_ns"][0]), 0, clock="ns")
    assert found["offset"][0] in rows["offset"]
    whole = trace.around(50, 50, clock="percent", columns=["kind"])
    assert len(whole) == len(trace.branches(columns=["kind"]))
    late = trace.around(0.0, 1e3, clock="seconds", columns=["kind"])
    assert len(late) == len(whole)
    assert len(trace.around(time, window, table="events")) > 0


@pytest.mark.parametrize(
    ("arguments", "options", "text"),
    [
        ((1, 0), {}, "outside the trace"),
        ((1, -1), {}, "must not be negative"),
        ((-5, 0), {}, "no number of TSC ticks"),
        ((1.5, 0), {}, "must be integers"),
        ((1, 0), {"clock": "utc"}, "clock='utc' is not one of"),
        ((1, 0), {"table": "edges"}, "table='edges' is not one of"),
        ((1, 0), {"order": "time"}, "has no offset=, instructions= and order="),
        ((float("nan"), 0), {"clock": "seconds"}, "finite"),
    ],
)
def test_bad_moments_say_what_is_wrong(trace: Any, arguments: Any, options: Any, text: str) -> None:
    with pytest.raises(ptkit.ConfigError, match=text):
        trace.around(*arguments, **options)


def test_at_times_has_the_rows_before_and_after(trace: Any) -> None:
    rng = np.random.default_rng(7)
    first, last = trace.info.first_tsc, trace.info.last_tsc
    times = np.concatenate([[first - 10, last + 10], rng.integers(first, last, 60)]).astype(np.uint64)
    found = trace.at_times(times, clock="tsc")
    assert len(found) == len(times) * len(trace.streams)
    assert found["time"].tolist() == [i for i in range(len(times)) for _ in trace.streams]
    assert (found["tsc"] == times[found["time"]]).all()
    assert (found["tsc_error"] == 0).all()
    for stream in range(len(trace.streams)):
        low, high, known = ends(trace.branches(stream=stream))
        assert known.all()
        rows = found[found["stream"] == stream]
        for row, time in enumerate(times.tolist()):
            before = np.flatnonzero(high < time)
            assert rows["branch"][row] == (before[-1] + 1 if len(before) else 0), row
            assert rows["end_branch"][row] == bisect_left(low.tolist(), time + 1), row
    assert not found["covered"][found["time"] < 2].any()


def test_at_times_has_the_frames_that_are_certain(trace: Any) -> None:
    rng = np.random.default_rng(8)
    times = rng.integers(trace.info.first_tsc, trace.info.last_tsc, 200).astype(np.uint64)
    found, calls = trace.at_times(times, clock="tsc"), trace.calls()
    low, high = calls["tsc"] + calls["tsc_error"], calls["end_tsc"]
    row_of = {number: row for row, number in enumerate(calls["id"].tolist())}
    framed = 0
    for row in np.flatnonzero(found["covered"]).tolist():
        time = int(found["tsc"][row])
        own = np.asarray(calls["stream"] == found["stream"][row])
        # Open before it at the latest, and ended after it at the earliest.
        certain = np.flatnonzero(own & (low < time) & (high > time) & (calls["time_known"]))
        if not len(certain):
            continue
        framed += 1
        deepest = certain[np.argmax(calls["depth"][certain])]
        frame = row_of[int(found["frame"][row])]
        assert calls["depth"][frame] >= calls["depth"][deepest]
        # It has begun by the last row before the time, and ends after the first row behind it.
        assert calls["tsc"][frame] <= time <= calls["end_tsc"][frame] + calls["end_tsc_error"][frame]
        assert calls["entry_ip"][frame] == found["entry_ip"][row]
    assert framed > 100
    assert found["innermost"].any()
    assert len(set(found["function"].tolist()) - {None}) > 1


def test_at_times_takes_threads_and_any_order(trace: Any) -> None:
    middle = (trace.info.first_tsc + trace.info.last_tsc) // 2
    both = trace.at_times([middle + 5000, middle], clock="tsc")
    assert both["tsc"].tolist() == sorted(both["tsc"].tolist(), reverse=True)
    tid = int(both["tid"][both["frame_known"]][0])
    own = trace.at_times([middle + 5000, middle], clock="tsc", tid=tid)
    assert set(own["tid"].tolist()) == {tid}
    assert len(trace.at_times([], clock="tsc")) == 0
    wide = trace.at_times([middle], clock="tsc", resolution=5000)
    later, early = both[: len(wide)], both[len(wide) :]
    assert (wide["branch"] == early["branch"]).all()
    assert (wide["end_branch"] == later["end_branch"]).all()
    assert set(wide["tsc_error"].tolist()) == {5000}
    with pytest.raises(ptkit.ConfigError, match="times are given"):
        trace.at_times([middle], clock="tsc", symbol="main")
    with pytest.raises(ptkit.ConfigError, match="must not be negative"):
        trace.at_times([middle], clock="tsc", resolution=-1)


@pytest.mark.parametrize("engine", ["ptkit", "simple"])
@pytest.mark.parametrize("threads", [1, 2])
def test_engines_and_threads_say_the_same_of_times(
    recorded: Path, trace: Any, engine: str, threads: int
) -> None:
    times = np.linspace(0, 100, 77)
    some = ptkit.open(recorded, engine=engine, threads=threads).at_times(times, clock="percent")
    others = trace.at_times(times, clock="percent")
    for name in (*others.columns, "stream", "tid"):
        np.testing.assert_array_equal(some[name], others[name], err_msg=name)


def test_flags_have_names(trace: Any) -> None:
    found = trace.at_times([50.0], clock="percent")
    assert ((found["flags"] & StackFlag.COVERED) != 0).tolist() == found["covered"].tolist()


@pytest.fixture(scope="module")
def logged(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, list[list[str]]]:
    """A recording of a program that notes times, and what it has printed."""
    folder = tmp_path_factory.mktemp("logged")
    program, log = build("clocked", folder), folder / "log.txt"
    shell = ["sh", "-c", f"exec {program} > {log}"]
    trace = ptkit.record(shell, output=folder / "clocked.ptk")
    return trace, [line.split() for line in log.read_text().splitlines()]


@pytest.mark.parametrize("clock", ["monotonic", "realtime"])
def test_times_of_a_log_lie_in_the_functions_that_took_them(logged: Any, clock: str) -> None:
    trace, lines = logged
    calls = trace.calls()
    names = dict(zip(calls["id"].tolist(), calls["entry_symbol"].tolist(), strict=True))
    parents = dict(zip(calls["id"].tolist(), calls.named("parent"), strict=True))
    times = [int(line[2 if clock == "monotonic" else 3]) for line in lines]
    found = trace.at_times(times, clock=clock)
    main = int(calls["stream"][calls["entry_symbol"] == "main"][0])
    certain = 0
    for number, (thread, function, *_) in enumerate(lines):
        rows = found[(found["time"] == number) & ((found["stream"] == main) == (thread == "0"))]
        frames = rows["frame"][rows["frame_known"]].tolist()
        chains = []
        for frame in frames:
            chain = []
            while frame is not None:
                chain.append(names[frame])
                frame = parents[frame]
            chains.append(chain)
        inside = [chain for chain in chains if function in chain]
        certain += bool(inside)
        # Where it is not certain, what is certain is below: no other function of the program.
        others = {"alpha", "beta", "outer"} - {function} - ({"outer"} if function == "beta" else set())
        for chain in chains:
            assert len(chains) > 1 or not others & set(chain), (number, function, chain)
    assert certain > len(lines) * 0.8


def test_clocks_that_a_recording_lacks_are_named(loop_trace: Any, open_trace: Any, loop: Any) -> None:
    for clock, name in (("monotonic", "CLOCK_MONOTONIC"), ("realtime", "CLOCK_REALTIME")):
        with pytest.raises(ptkit.ConfigError, match=f'{name}; recordings of ptkit record do.*clock="ns"'):
            loop_trace.at_times([1], clock=clock)
    with pytest.raises(ptkit.ConfigError, match="clock of this trace is not known"):
        loop_trace.at_times([1], clock="ns")
    # perf's conversion: ns = time_zero + (tsc * time_mult >> time_shift).
    known = open_trace(loop.stream(20), images=loop.images(), perf_time=(3, 2, 500))
    found = known.at_times([500 + 1500 * 3 // 4, 500 + 1501 * 3 // 4], clock="ns")
    least = found["tsc"].tolist()
    last = (found["tsc"] + found["tsc_error"]).tolist()
    for ns, low, high in zip((1625, 1625), least, last, strict=True):
        assert [500 + tick * 3 // 4 for tick in (low - 1, low, high, high + 1)] == [ns - 1, ns, ns, ns + 1]
