"""LLDB's bundles that were recorded per CPU: context switches alone say which thread a row belongs to."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest
from warned import warned

import ptkit

# Of both programs: where the module begins, and its code in it.
_MODULE = 0x400000
_BASE = _MODULE + 0x1000
_ONE = bytes.fromhex("ffc975fcffe0")  # again: dec ecx; jnz again; jmp rax
_OTHER = bytes.fromhex("48ffc975fbffe0")  # the same with rcx: its branches are one byte further on

# perf's clock: ns = 500 + tsc * 512 / 1024.
_CLOCK = {"timeMult": 512, "timeShift": 10, "timeZero": "500"}
_SWITCH_CPU_WIDE = 15
_OUT = 0x2000
_OUT_PREEMPT = 0x6000


def _ns(tsc: int) -> int:
    return 500 + tsc // 2


def _switch(misc: int, pid: int, tid: int, tsc: int) -> bytes:
    """A record as the kernel writes it: the other side's thread, then the trailer with thread and time."""
    return struct.pack("<IHHIIIIQ", _SWITCH_CPU_WIDE, misc, 32, 0, 0, pid, tid, _ns(tsc))


def _elf(code: bytes) -> bytes:
    """A shared library of one segment: its first page has the headers, the next one the code."""
    ident = b"\x7fELF\x02\x01\x01" + bytes(9)
    header = struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 64, 0, 0, 64, 56, 1, 64, 0, 0)
    size = 0x1000 + len(code)
    segment = struct.pack("<IIQQQQQQ", 1, 5, 0, 0, 0, size, size, 0x1000)
    return (ident + header + segment).ljust(0x1000, b"\0") + code


def _run(packets: Any, tsc: int, rounds: int) -> bytes:
    """A thread comes, goes through the loop `rounds` times (a TSC packet for each), and goes."""
    parts = [packets.tsc(tsc), packets.pge(_BASE)]
    for number in range(1, rounds + 1):
        parts.append(packets.tnt("10") + packets.tip(_BASE) + packets.tsc(tsc + 10 * number))
    return b"".join([*parts, packets.fup(_BASE), packets.TIP_PGD])


@pytest.fixture
def bundle(tmp_path: Path, packets: Any, loop: Any) -> Path:
    """CPU 3: thread 11, idle, thread 21 of another process, thread 11 again; CPU 5: thread 12."""
    header = loop.header(None, 900)
    streams = {
        3: header
        + _run(packets, 1_100, 4)
        + _run(packets, 3_100, 5)
        + _run(packets, 5_100, 6)
        + packets.tsc(9_000),
        5: header + _run(packets, 1_500, 7) + packets.tsc(9_000),
    }
    switches = {
        3: _switch(0, 10, 11, 1_000)
        + _switch(_OUT, 10, 11, 2_000)
        + _switch(0, 0, 0, 2_000)
        + _switch(_OUT, 0, 0, 3_000)
        + _switch(0, 20, 21, 3_000)
        + _switch(_OUT_PREEMPT, 20, 21, 5_000)
        + _switch(0, 10, 11, 5_000),
        5: _switch(0, 10, 12, 1_000),
    }
    for cpu in streams:
        (tmp_path / f"{cpu}.intelpt_trace").write_bytes(streams[cpu] + bytes(64))
        (tmp_path / f"{cpu}.perf_context_switch_trace").write_bytes(switches[cpu])
    for name, code in (("one.so", _ONE), ("other.so", _OTHER)):
        (tmp_path / name).write_bytes(_elf(code))

    def process(pid: int, tids: list[int], module: str) -> dict[str, Any]:
        loaded = {"systemPath": f"/lib/{module}", "file": module, "loadAddress": hex(_MODULE)}
        return {"pid": pid, "threads": [{"tid": tid} for tid in tids], "modules": [loaded]}

    document = {
        "type": "intel-pt",
        "cpuInfo": {"vendor": "GenuineIntel", "family": 6, "model": 79, "stepping": 1},
        "processes": [process(10, [11, 12], "one.so"), process(20, [21], "other.so")],
        "cpus": [
            {
                "id": cpu,
                "iptTrace": f"{cpu}.intelpt_trace",
                "contextSwitchTrace": f"{cpu}.perf_context_switch_trace",
            }
            for cpu in streams
        ],
        "tscPerfZeroConversion": _CLOCK,
    }
    (tmp_path / "trace.json").write_text(json.dumps(document))
    return tmp_path


def test_a_switch_says_whether_a_thread_was_preempted(bundle: Path, tmp_path: Path) -> None:
    again = ptkit.open(bundle)
    again.save(tmp_path / "saved.ptk")
    for trace in (again, ptkit.open(tmp_path / "saved.ptk")):
        departures = [one[3] for one in ptkit._core.stream_switches(trace.opened.session, 0)]
        assert departures == [0, 1, 0, 1, 0, 2, 0]
        threads = trace.threads(tid=11)
        # It was in no system call when it left, and waited all the same.
        assert (threads["waiting"].tolist(), threads["waits"].tolist()) == ([3_000], [1])
        assert (threads["preempted"].tolist(), threads["preemptions"].tolist()) == ([0], [0])
        waits = trace.waits(tid=11)
        assert waits.named("ip") == [None]
        assert not waits["is_preempted"].any()


def test_older_kernels_do_not_say_that_a_thread_waits(bundle: Path) -> None:
    records = bundle / "3.perf_context_switch_trace"
    records.write_bytes(
        records.read_bytes().replace(struct.pack("<H", _OUT_PREEMPT), struct.pack("<H", _OUT))
    )
    trace = ptkit.open(bundle)
    threads = trace.threads(tid=11)
    assert (threads["waiting"].tolist(), threads["preempted"].tolist()) == ([0], [3_000])
    assert trace.waits(tid=11)["is_preempted"].all()


def test_streams_are_processors(bundle: Path) -> None:
    trace = ptkit.open(bundle)
    assert trace.format == "lldb"
    assert [stream.cpu for stream in trace.streams] == [3, 5]
    assert [stream.tid for stream in trace.streams] == [None, None]
    assert [stream.switches for stream in trace.streams] == [7, 1]
    assert trace.info.perf_time is not None
    assert sorted(tid for _, tid, _ in trace.info.threads if tid is not None) == [11, 12, 21]


def test_rows_belong_to_threads(bundle: Path) -> None:
    trace = ptkit.open(bundle)
    table = trace.branches(columns=["from_ip", "to_ip", "kind", "taken", "cpu", "pid", "tid", "tid_known"])
    assert trace.errors.messages() == []
    assert table["tid_known"].all()
    # Each round: the loop taken, left, and the indirect jump.
    for cpu, tid, pid, rounds in ((3, 11, 10, 4 + 6), (3, 21, 20, 5), (5, 12, 10, 7)):
        part = table.where(tid=tid, kind=[ptkit.BranchKind.COND, ptkit.BranchKind.JUMP_INDIRECT])
        assert len(part) == 3 * rounds, tid
        assert set(part["cpu"].tolist()) == {cpu}
        assert set(part["pid"].tolist()) == {pid}
        assert part["taken"].tolist() == [True, False, True] * rounds
        assert len(trace.branches(tid=tid)) == len(table.where(tid=tid))


def test_each_process_has_its_code(bundle: Path) -> None:
    trace = ptkit.open(bundle)
    for tid, pid, code in ((11, 10, _ONE), (12, 10, _ONE), (21, 20, _OTHER)):
        table = trace.branches(tid=tid, columns=["from_ip", "kind", "space"])
        where = set(table.where(kind=ptkit.BranchKind.COND)["from_ip"].tolist())
        assert where == {_BASE + code.index(0x75)}, tid
        (space,) = set(table["space"].tolist())
        assert trace.info.spaces[space][0] == pid
        assert trace.code(_BASE, len(code), space=space) == code


def test_times_are_those_of_perf(bundle: Path) -> None:
    trace = ptkit.open(bundle)
    table = trace.branches(tid=21, columns=["kind", "tsc", "tsc_error", "time_known", "time_ns"])
    jumps = table.where(kind=ptkit.BranchKind.JUMP_INDIRECT)
    assert jumps["time_known"].all()
    assert jumps["time_ns"].tolist() == [_ns(tsc) for tsc in jumps["tsc"].tolist()]
    # The TIP packet of round n, between the TSC packets of 10 * n and 10 * (n + 1), may have been deferred:
    # its jump is younger than the TIP packet of the round before.
    assert jumps["tsc"].tolist() == [3_100, 3_100, 3_110, 3_120, 3_130]
    assert jumps["tsc_error"].tolist() == [10, 20, 20, 20, 20]


def test_damaged_switches_are_warned_of(bundle: Path) -> None:
    path = bundle / "3.perf_context_switch_trace"
    path.write_bytes(path.read_bytes()[:40])
    with warned("SWITCHES_CUT", 32, 40):
        trace = ptkit.open(bundle)
    assert trace.streams[0].switches == 1
