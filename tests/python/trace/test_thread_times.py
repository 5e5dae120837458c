"""`trace.threads()` and `trace.waits()`: when threads ran, and where they waited."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from compiling import build
from small_elf import elf

import ptkit

# app: again: call wait_for; jmp again.  library: wait_for: nop; syscall; ret.
APP, LIBRARY = 0x401000, 0x501000
APP_CODE = b"\xe8" + (LIBRARY - APP - 5).to_bytes(4, "little") + b"\xeb\xf9"
LIBRARY_CODE = bytes.fromhex("900f05c3")
SYSCALL, BEHIND = LIBRARY + 1, LIBRARY + 3
THREAD = (1, 11)


@pytest.fixture
def switched(packets: Any, tmp_path: Path) -> Any:
    """Opens streams of processors with context switches as a trace of both programs."""

    def opened(*streams: tuple[bytes, list[tuple[int, int | None, int | None, int]]]) -> ptkit.Trace:
        bundle = ptkit._core.Bundle()
        for name, code, address in (("app", APP_CODE, APP), ("library", LIBRARY_CODE, LIBRARY)):
            (tmp_path / name).write_bytes(elf(code, address, {"app": "again", "library": "wait_for"}[name]))
            bundle.add_image(str(tmp_path / name))
        for cpu, (data, switches) in enumerate(streams):
            bundle.add_stream(data, cpu=cpu, switches=switches)
        return ptkit.Trace(bundle, ptkit.decode.Settings())

    return opened


def header(packets: Any, tsc: int) -> bytes:
    return packets.PSB + packets.tsc(tsc) + packets.MODE_64 + packets.PSBEND


def until_syscall(packets: Any, begin: int, end: int, ip: int = APP) -> bytes:
    """Code from `ip` to the next system call."""
    rest = b"" if ip == APP else packets.tip(APP + 5)
    return packets.tsc(begin) + packets.pge(ip) + rest + packets.tsc(end) + packets.TIP_PGD


def migrating(packets: Any) -> list[tuple[bytes, list[tuple[int, int | None, int | None, int]]]]:
    """A thread waits in a system call, wakes up on another processor, and is preempted there."""
    first = header(packets, 1000) + until_syscall(packets, 1000, 1900)
    second = header(packets, 900) + until_syscall(packets, 5000, 5500, BEHIND)
    second += packets.tsc(6000) + packets.pge(BEHIND) + packets.tip(APP + 5) + packets.tsc(6900)
    second += packets.fup(APP) + packets.TIP_PGD  # an interrupt
    second += packets.tsc(8000) + packets.pge(APP) + packets.tsc(8900) + packets.TIP_PGD
    return [
        (first, [(1000, *THREAD, 0), (2000, None, None, 0)]),
        (second, [(5000, *THREAD, 0), (7000, 2, 22, 0), (8000, *THREAD, 0), (9000, None, None, 0)]),
    ]


def test_switches_of_all_processors_say_when_a_thread_ran(packets: Any, switched: Any) -> None:
    trace = switched(*migrating(packets))
    threads = trace.threads(tid=11)
    assert threads.name == "threads"
    assert (threads["pid"].tolist(), threads["tid"].tolist()) == ([1], [11])
    assert threads["switches_known"].all()
    assert not threads["incomplete"].any()
    assert threads["running"].tolist() == [1000 + 2000 + 1000]
    assert (threads["waiting"].tolist(), threads["waits"].tolist()) == ([3000], [1])
    assert (threads["preempted"].tolist(), threads["preemptions"].tolist()) == ([1000], [1])
    assert threads.named("untraced") == [None]
    assert threads["instructions"][0] == trace.calls(tid=11)["self_instructions"].sum()


def test_a_wait_has_the_system_call_and_its_caller(packets: Any, switched: Any) -> None:
    waits = switched(*migrating(packets)).waits(tid=11)
    assert waits["length"].tolist() == [3000, 1000]
    assert waits["count"].tolist() == [1, 1]
    assert waits["is_switched"].all()
    assert waits.named("ip") == [SYSCALL, None]
    assert waits.named("caller_ip") == [APP, None]
    assert waits["symbol"][0] == "wait_for"
    assert waits["caller_symbol"][0] == "again"


def test_waits_at_one_site_are_summed_up(packets: Any, switched: Any) -> None:
    data, switches = header(packets, 1000), []
    for number in range(4):
        begin = 1000 + 1000 * number
        data += until_syscall(packets, begin, begin + 300, BEHIND if number else APP)
        switches += [(begin, *THREAD, 0), (begin + 400, None, None, 0)]
    trace = switched((data, switches))
    waits = trace.waits()
    assert (waits["count"].tolist(), waits["length"].tolist()) == ([3], [3 * 600])
    threads = trace.threads()
    assert threads["running"].tolist() == [4 * 400]
    assert threads["waiting"].tolist() == [3 * 600]


def test_lost_data_is_marked(packets: Any, switched: Any) -> None:
    data = header(packets, 1000) + until_syscall(packets, 1000, 1900)
    whole = switched((data, [(1000, *THREAD, 0), (2000, None, None, 0)]))
    assert not whole.threads()["incomplete"].any()
    damaged = switched((data + packets.OVF + packets.fup(APP), [(1000, *THREAD, 0), (2000, None, None, 0)]))
    assert damaged.threads()["incomplete"].all()


def test_without_times_nothing_is_said_of_them(packets: Any, switched: Any) -> None:
    data = packets.PSB + packets.MODE_64 + packets.PSBEND + packets.pge(APP) + packets.TIP_PGD
    trace = switched((data, []))
    threads, waits = trace.threads(), trace.waits()
    assert threads.named("tid") == [None]
    assert threads["instructions"].tolist() == [3]
    for column in ("running", "untraced", "waiting", "waits", "preempted", "preemptions"):
        assert threads.named(column) == [None], column
    assert (waits["count"].tolist(), waits.named("length")) == ([1], [None])


def test_threads_without_switches_have_untraced_time(tmp_path: Path) -> None:
    program = build("threads", tmp_path, "-static")
    trace = ptkit.record([str(program)], output=tmp_path / "threads.ptk")
    threads: Any = trace.threads()
    assert len(threads) == 4
    assert not threads["switches_known"].any()
    assert threads["time_known"].all()
    assert threads["instructions"].sum() == len(trace.instructions(columns=["cls"]))
    roots = trace.calls()
    roots = roots[~roots["parent_known"]]
    for column in ("running", "untraced"):
        assert threads[column].sum() == roots[column].sum()
    waits: Any = trace.waits()
    calls: Any = trace.calls()
    assert waits["count"].sum() == (calls["how"] == "SYSCALL").sum()
    assert not waits["is_switched"].any()
    one = trace.threads(tid=int(threads["tid"][0]))
    assert one["running"].tolist() == threads["running"][:1].tolist()
