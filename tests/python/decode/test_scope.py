"""Selections by what a trace has: streams, processors, threads, processes, addresses and times."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ptkit

TABLES = ("packets", "branches", "blocks", "instructions", "events")
HZ = 1_000_000_000  # a tick is a nanosecond


@pytest.fixture
def threads(loop: Any) -> Any:
    """Streams of three threads of two processes on two processors: 10, 20 and 30 rounds.

    Times of stream 0 are 1,000 to 2,000 ticks, of stream 1 3,000 to 5,000, of stream 2 10,000 to 13,000.
    """
    bundle = ptkit._core.Bundle()
    bundle.add_code(loop.BASE, loop.CODE)
    bundle.set_clock(tsc_hz=HZ)
    for cpu, pid, tid, rounds, tsc in ((0, 1, 11, 10, 1_000), (1, 1, 12, 20, 3_000), (1, 2, 21, 30, 10_000)):
        data = loop.stream(rounds, psb_every=1, tsc=tsc, step=100)
        bundle.add_stream(data, name=f"t{tid}", cpu=cpu, pid=pid, tid=tid)
    return ptkit.Trace(bundle, ptkit.decode.Settings())


@pytest.mark.parametrize(
    ("query", "streams"),
    [
        ({"tid": 12}, [1]),
        ({"tid": [11, 21]}, [0, 2]),
        ({"pid": 1}, [0, 1]),
        ({"pid": np.array([1, 2])}, [0, 1, 2]),
        ({"cpu": 1}, [1, 2]),
        ({"cpu": {0, 1}}, [0, 1, 2]),
        ({"cpu": 1, "pid": 1}, [1]),
        ({"stream": [0, 2], "cpu": 1}, [2]),
        ({"stream": 0, "tid": 21}, []),
    ],
)
@pytest.mark.parametrize("table", TABLES)
def test_cpu_tid_and_pid_select_streams(
    threads: Any, query: dict[str, Any], streams: list[int], table: str
) -> None:
    whole = getattr(threads, table)()
    part = getattr(threads, table)(**query)
    mask = np.isin(whole["stream"], streams)
    assert len(part) == int(mask.sum())
    for name in whole.columns:
        assert (part[name] == whole[name][mask]).all(), name
    parts = getattr(threads, f"iter_{table}")(rows=7, **query)
    assert sum(len(one) for one in parts) == len(part)
    in_time = getattr(threads, table)(order="time", **query)
    assert len(in_time) == len(part)


def test_streams_of_other_threads_are_not_decoded(loop: Any) -> None:
    bundle = ptkit._core.Bundle()
    bundle.add_code(loop.BASE, loop.CODE)
    bundle.add_stream(loop.stream(3), tid=11)
    bundle.add_stream(loop.stream(3) + b"\x02\xff" + loop.stream(3), tid=12)
    trace = ptkit.Trace(bundle, ptkit.decode.Settings())
    assert len(trace.branches(tid=12).errors) == 1
    rows = trace.branches(tid=11)
    assert len(rows) == 21
    assert rows.errors is None or len(rows.errors) == 0


def test_switches_tell_which_threads_a_stream_has(loop: Any) -> None:
    bundle = ptkit._core.Bundle()
    bundle.add_code(loop.BASE, loop.CODE)
    data = loop.stream(100, psb_every=1, step=100)
    bundle.add_stream(data, cpu=3, switches=[(0, 1, 11, 0), (5_000, 2, 22, 0), (8_000, None, None, 0)])
    bundle.add_stream(data, cpu=4, switches=[(0, 3, 33, 0)])
    trace = ptkit.Trace(bundle, ptkit.decode.Settings())
    assert 0 < len(trace.branches(tid=22)) == len(trace.branches(pid=2)) < 700
    assert set(trace.branches(pid=[1, 3])["tid"].tolist()) == {11, 33}
    with pytest.raises(ptkit.ConfigError, match=r"no thread 12 in this trace: it has 11, 22, 33$"):
        trace.branches(tid=12)


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ({"tid": 13}, r"no thread 13 in this trace: it has 11, 12, 21$"),
        ({"tid": [11, 99]}, r"no thread 99 in this trace: it has 11, 12, 21$"),
        ({"pid": 11}, r"no process 11 in this trace: it has 1, 2$"),
        ({"cpu": 7}, r"no processor 7 in this trace: it has 0, 1$"),
        ({"stream": 3}, r"no stream 3 in this trace: it has streams 0 to 2$"),
        ({"module": "libc.so.6"}, r"no module 'libc.so.6' in this trace: .* does not state from which files"),
    ],
)
@pytest.mark.parametrize("table", TABLES)
def test_what_the_trace_does_not_have_is_an_error(
    threads: Any, query: dict[str, Any], text: str, table: str
) -> None:
    for method in (getattr(threads, table), getattr(threads, f"iter_{table}"), threads.edges):
        with pytest.raises(ptkit.ConfigError, match=text):
            method(**query)


def test_many_ids_are_cut_to_the_nearest(loop: Any) -> None:
    bundle = ptkit._core.Bundle()
    for tid in range(100, 140):
        bundle.add_stream(loop.stream(1), tid=tid)
    trace = ptkit.Trace(bundle, ptkit.decode.Settings())
    with pytest.raises(
        ptkit.ConfigError, match=r"it has 135, 136, 137, 138, 139 and 35 more \(see .*ptkit info"
    ):
        trace.branches(tid=141)


def test_a_trace_without_owners_says_so(loop_trace: Any) -> None:
    for query, noun in (({"tid": 1}, "thread"), ({"pid": 1}, "process"), ({"cpu": 0}, "processor")):
        with pytest.raises(ptkit.ConfigError, match=f"the trace does not state of which {noun} it is"):
            loop_trace.branches(**query)


def test_addresses_alone_and_in_ranges(loop_trace: Any, loop: Any) -> None:
    one = loop_trace.instructions(ip=loop.JMP)
    assert len(one) == 200
    for value in ([loop.JMP], np.uint64(loop.JMP), np.array([loop.JMP]), (loop.JMP, loop.JMP + 1)):
        assert len(loop_trace.instructions(ip=value)) == 200
    both = loop_trace.instructions(ip=[loop.JMP, (loop.JNZ, loop.JNZ + 1)])
    assert set(both["ip"].tolist()) == {loop.JMP, loop.JNZ}
    three = loop_trace.instructions(ip=[loop.BASE, loop.JNZ, loop.JMP])
    assert set(three["ip"].tolist()) == {loop.BASE, loop.JNZ, loop.JMP}
    assert len(loop_trace.touching([loop.JMP, (loop.JNZ, loop.JNZ + 1)]).instructions()) == len(both)


# ---- time


def rows_between(table: ptkit.Table, low: int, high: int) -> int:
    return int((table["time_known"] & (table["tsc"] >= low) & (table["tsc"] < high)).sum())


def test_info_has_first_and_last_times(threads: Any) -> None:
    info = threads.info
    assert (info.first_tsc, info.last_tsc) == (1_000, 13_000)
    assert (info.first_ns, info.last_ns) == (1_000, 13_000)
    assert info.seconds == 12e-6
    assert [(one.first_tsc, one.last_tsc) for one in threads.streams] == [
        (1_000, 2_000),
        (3_000, 5_000),
        (10_000, 13_000),
    ]
    text = str(info)
    assert "times:         TSC 1,000 to 13,000, span 0.000012000 s (12,000 ticks)" in text
    assert "1: 720 bytes, cpu 1, pid 1, tid 12, 0.000002 s to 0.000004 s  (t12)" in text.replace(
        f"{threads.streams[1].size:,} bytes", "720 bytes"
    )


def test_times_are_those_of_the_rows(threads: Any) -> None:
    for stream in range(3):
        times = threads.packets(stream=stream)
        known = times["tsc"][times["time_known"]]
        span = threads.streams[stream]
        assert (int(known.min()), int(known.max())) == (span.first_tsc, span.last_tsc)


def test_a_trace_without_times_or_clock(open_trace: Any, loop: Any, packets: Any) -> None:
    data = packets.PSB + packets.MODE_64 + packets.PSBEND + packets.pge(loop.BASE) + packets.tnt("110")
    trace = open_trace(data, images=loop.images())
    assert trace.info.first_tsc is None
    assert "times:         none (no TSC packet)" in str(trace.info)
    for ask in (
        lambda: trace.branches(time=(0, 5)),
        lambda: trace.between(1, 2),
        lambda: trace.between(percent=(0, 50)),
    ):
        with pytest.raises(ptkit.ConfigError, match="the trace has no times"):
            ask()
    trace = open_trace(loop.stream(5), images=loop.images())
    assert "times:         TSC 1,000 to 1,000, span 0 ticks" in str(trace.info)
    for ask in (lambda: trace.between(seconds=(0, 1)), lambda: trace.between(ns=(0, 1))):
        with pytest.raises(ptkit.ConfigError, match=r"the clock of this trace is not known: .*tsc_hz="):
            ask()


@pytest.mark.parametrize(
    ("units", "ticks"),
    [
        ({"seconds": (0, 1e-6)}, (1_000, 2_000)),
        ({"seconds": (2.5e-6, None)}, (3_500, None)),
        ({"seconds": (None, 3e-6)}, (None, 4_000)),
        ({"seconds": (0, 1)}, (1_000, None)),
        ({"ns": (3_000, 4_000)}, (3_000, 4_000)),
        ({"ns": (np.int64(3_000), 4e3)}, (3_000, 4_000)),
        ({"percent": (0, 50)}, (1_000, 7_000)),
        ({"percent": (50.0, 100)}, (7_000, None)),
        ({"percent": (0, 100)}, (None, None)),
    ],
)
def test_between_takes_every_unit(
    threads: Any, units: dict[str, Any], ticks: tuple[int | None, int | None]
) -> None:
    rows = threads.between(**units).branches()
    low, high = ticks[0] or 0, 2**64 - 1 if ticks[1] is None else ticks[1]
    assert 0 < len(rows) == rows_between(threads.branches(), low, high)


def test_nanoseconds_are_those_of_the_column(open_trace: Any, loop: Any) -> None:
    trace = open_trace(
        loop.stream(200, tsc=10**9, step=977), images=loop.images(), perf_time=(345_678_901, 30, 123_456_789)
    )
    branches = trace.branches()
    ns = branches["time_ns"][branches["time_known"]]
    low, high = int(ns[300]), int(ns[900])
    part = trace.between(ns=(low, high)).branches()
    assert len(part) == int(((ns >= low) & (ns < high)).sum()) > 0
    assert (part["time_ns"] >= low).all()
    assert (part["time_ns"] < high).all()


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"seconds": (5, 1)}, "seconds=.5, 1.: begin must not be above end"),
        ({"seconds": 5}, r"must be \(begin, end\)"),
        ({"seconds": ("1", 2)}, "'1' is not a number"),
        ({"seconds": (0, float("nan"))}, "nan is not a time"),
        ({"percent": (0, 101)}, r"101 is not in \[0, 100\]"),
        ({"ns": (0, 1), "seconds": (0, 1)}, "one interval: ticks, or one of ns, seconds, percent"),
        ({"t0": 5, "percent": (0, 1)}, "one interval"),
        ({"t0": 6, "t1": 5}, "t0 must not be above t1"),
    ],
)
def test_intervals_of_a_wrong_form_are_refused(threads: Any, arguments: dict[str, Any], text: str) -> None:
    with pytest.raises(ptkit.ConfigError, match=text):
        threads.between(**arguments)


@pytest.mark.parametrize(
    "ask",
    [
        lambda trace: trace.branches(time=(0, 100)),
        lambda trace: trace.branches(time=(1.0, 2.0)),
        lambda trace: trace.between(20_000, 30_000),
        lambda trace: trace.between(20_000, None),
        lambda trace: trace.between(None, 1_000),
        lambda trace: trace.between(seconds=(1, 2)),
        lambda trace: trace.between(seconds=(-2, -1)),
        lambda trace: trace.between(ns=(0, 5)),
        lambda trace: trace.between(ns=(10**6, 10**7)),
        lambda trace: trace.between(5_000, 6_000).branches(time=(0, 1)),
    ],
)
def test_a_time_outside_the_trace_is_an_error(threads: Any, ask: Any) -> None:
    text = (
        r"outside the trace, which spans TSC 1,000 to 13,000 \(0\.000012000 s; 1,000 to 13,000 ns\).*seconds="
    )
    with pytest.raises(ptkit.ConfigError, match=text):
        ask(threads)


def test_an_interval_without_rows_inside_the_trace_is_empty(threads: Any) -> None:
    assert len(threads.between(6_000, 7_000).branches()) == 0
    assert len(threads.between(5_500, 5_500).branches()) == 0
    assert len(threads.between(13_000, None).branches()) > 0


def test_branch_records_have_times(loop: Any) -> None:
    records = {"from_ip": [0x1004] * 4, "to_ip": [0x1000] * 4, "tsc": [0, 100, 200, 0]}
    trace = ptkit.open_branches(records, images={loop.BASE: loop.CODE}, tsc_hz=HZ)
    assert (trace.info.first_tsc, trace.info.last_tsc) == (100, 200)
    assert len(trace.between(100, 150).branches()) > 0
    with pytest.raises(ptkit.ConfigError, match="outside the trace"):
        trace.between(300, 400)
