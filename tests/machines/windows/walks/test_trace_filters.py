"""Trace that each filter suppresses, with the configurations that the driver makes of requests.

Threads of the model execute code of two processes, of the kernel, in real-address mode and in virtual-8086
mode in turns. The table is that of docs/windows-tests.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from model_log import BLOCK_BYTES, KERNEL, REAL, TRACED, USER, VIRTUAL_8086, Program, Stay, addresses
from model_log import programs as read_programs
from model_log import stays as read_stays
from walker import Walker

from ptkit import GapCause, PacketKind

PAGE = Path(__file__).resolve().parents[4] / "docs" / "windows-tests.md"
PROCESS = 1234  # session.h; its page tables are at PROCESS << 16
TRACE_USER, TRACE_KERNEL = 1, 2  # PTKIT_TRACE_*
BOTH = TRACE_USER | TRACE_KERNEL
FILTER, STOP = 1, 2
THREADS = {"user code": 0, "another process": 1, "kernel code": 6, "real-address": 8, "virtual-8086": 9}
STOPPED = 1 << 5  # IA32_RTIT_STATUS
WHOLE = (0, 511)

pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Filter:
    """A configuration. A range is of a program: its action, the program, and its blocks."""

    flags: int = BOTH
    process: int = 0
    ranges: tuple[tuple[int, int, tuple[int, int]], ...] = ()

    def arguments(self, programs: list[Program]) -> list[str]:
        """Of walk.c."""
        found = [str(self.flags), str(self.process)]
        for action, number, blocks in self.ranges:
            program = programs[number]
            first, last = (program.base, program.last) if blocks == WHOLE else program.part(*blocks)
            found += [str(action), str(first), str(last)]
        return found


FILTERS = {
    "none": Filter(),
    "CTL.User": Filter(TRACE_USER),
    "CTL.OS": Filter(TRACE_KERNEL),
    "CR3": Filter(process=PROCESS),
    "CR3, CTL.User": Filter(TRACE_USER, PROCESS),
    "CR3, CTL.OS": Filter(TRACE_KERNEL, PROCESS),
    "range in user code": Filter(ranges=((FILTER, USER, (128, 384)),)),
    "range in user code, CR3": Filter(process=PROCESS, ranges=((FILTER, USER, (128, 384)),)),
    "ranges of kernel and virtual-8086 code": Filter(
        ranges=((FILTER, KERNEL, WHOLE), (FILTER, VIRTUAL_8086, WHOLE))
    ),
    "range in real-address code, CTL.User": Filter(TRACE_USER, ranges=((FILTER, REAL, (100, 400)),)),
    "TraceStop in real-address code": Filter(ranges=((STOP, REAL, (200, 300)),)),
    "TraceStop in real-address code, CTL.User": Filter(TRACE_USER, ranges=((STOP, REAL, (200, 300)),)),
    "range of user code, TraceStop in kernel code": Filter(
        ranges=((FILTER, USER, WHOLE), (STOP, KERNEL, (200, 300)))
    ),
}


@dataclass
class Recording:
    """One of the two streams of a configuration. The second one has a pause in the middle."""

    trace: Any
    stays: list[Stay]
    status: int
    programs: list[Program] = field(default_factory=list)

    @property
    def blocks(self) -> Any:
        """Decoded, by their addresses."""
        ips = np.asarray(self.trace.instructions(columns=["ip"])["ip"])
        return ips[ips % BLOCK_BYTES == 0]

    @property
    def entries(self) -> Any:
        """All that was executed, in order."""
        return np.concatenate([stay.entries for stay in self.stays])

    @property
    def cr3s(self) -> set[int]:
        """Of PIP packets."""
        packets = self.trace.packets(columns=["kind", "payload"])
        return {int(cr3) for cr3 in packets["payload"][packets["kind"] == PacketKind.PIP]}

    @property
    def stops(self) -> list[int]:
        """Offsets of TraceStop packets."""
        packets = self.trace.packets(columns=["kind", "offset"])
        return [int(offset) for offset in packets["offset"][packets["kind"] == PacketKind.TRACE_STOP]]

    def cells(self) -> list[str]:
        """Of a row of the table."""
        found = []
        for thread in THREADS.values():
            of_thread = np.concatenate([stay.entries for stay in self.stays if stay.thread == thread])
            traced = (of_thread & TRACED) != 0
            found.append("all" if traced.all() else "part" if traced.any() else "-")
        return [*found, "yes" if self.cr3s else "-", "yes" if self.stops else "-"]


@pytest.fixture(scope="session")
def programs(walker: Walker) -> list[Program]:
    walker.walk("programs")
    return read_programs(walker.folder)


@pytest.fixture(scope="module")
def record(
    walker: Walker, programs: list[Program], open_trace: Callable[..., Any]
) -> Callable[[str], list[Recording]]:
    """Recordings by the name of a filter."""
    known: dict[str, list[Recording]] = {}

    def recordings(name: str) -> list[Recording]:
        if name not in known:
            walker.walk("filter", *FILTERS[name].arguments(programs))
            known[name] = [recording(walker, programs, turn, open_trace) for turn in range(2)]
        return known[name]

    return recordings


def recording(
    walker: Walker, programs: list[Program], turn: int, open_trace: Callable[..., Any]
) -> Recording:
    stream, log, status = (
        (walker.folder / f"filter.{turn}.{kind}").read_bytes() for kind in ("pt", "log", "status")
    )
    assert log
    code = {program.base: program.code for program in programs}
    stays = list(read_stays(walker.folder / f"filter.{turn}.log"))
    return Recording(open_trace(stream, images=[code]), stays, int.from_bytes(status, "little"), programs)


def documented() -> dict[str, list[str]]:
    """Rows of the table, by the filter."""
    section = PAGE.read_text().split("## What filters suppress")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (.+) \|$", section, re.MULTILINE)
    cells = [[cell.strip() for cell in row.split("|")] for row in rows]
    return {name.replace("`", ""): rest for name, *rest in cells[1:]}


@pytest.mark.parametrize("name", FILTERS)
def test_filter_suppresses_what_the_table_says(record: Callable[[str], list[Recording]], name: str) -> None:
    for one in record(name):
        assert one.cells() == documented()[name]


@pytest.mark.parametrize("name", FILTERS)
def test_stream_has_the_code_that_no_filter_suppresses(
    record: Callable[[str], list[Recording]], name: str
) -> None:
    for one in record(name):
        assert len(one.trace.errors) == 0
        traced = one.entries[(one.entries & TRACED) != 0]
        np.testing.assert_array_equal(one.blocks, addresses(traced))


def test_documentation_has_each_filter() -> None:
    assert list(documented()) == list(FILTERS)


def test_ranges_select_by_address(record: Callable[[str], list[Recording]], programs: list[Program]) -> None:
    """Both ends belong to the range, and nothing outside of it is traced."""
    first, last = programs[USER].part(128, 384)
    for one in record("range in user code"):
        ips = addresses(one.entries)
        inside = (ips >= first) & (ips <= last)
        np.testing.assert_array_equal((one.entries & TRACED) != 0, inside)
        assert {int(one.blocks.min()), int(one.blocks.max()) + BLOCK_BYTES - 1} == {first, last}


def test_code_has_the_mode_that_it_was_executed_in(record: Callable[[str], list[Recording]]) -> None:
    for one in record("none"):
        table = one.trace.instructions(columns=["ip", "mode"])
        low = table["ip"] <= one.programs[REAL].last
        assert set(np.asarray(table["mode"])[low].tolist()) == {16}
        assert set(np.asarray(table["mode"])[~low].tolist()) == {64}


def test_address_spaces_of_suppressed_code_are_not_told(record: Callable[[str], list[Recording]]) -> None:
    """PIP packets come with CTL.OS alone, and have no CR3 of other processes."""
    both = {PROCESS << 16, (PROCESS + 1) << 16}
    assert [one.cr3s for one in record("none")] == [both] * 2
    for name in ("CR3", "CR3, CTL.OS"):
        assert [one.cr3s for one in record(name)] == [{PROCESS << 16}] * 2
    for name in ("CTL.User", "CR3, CTL.User"):
        assert [one.cr3s for one in record(name)] == [set()] * 2


@pytest.mark.parametrize(
    ("name", "number"),
    [("TraceStop in real-address code", REAL), ("range of user code, TraceStop in kernel code", KERNEL)],
)
def test_tracing_ends_where_a_trace_stop_range_is_entered(
    record: Callable[[str], list[Recording]], programs: list[Program], name: str, number: int
) -> None:
    """Up to its first block; then the packet. PTKIT_WINDOWS_START and _RESUME trace again."""
    first, last = programs[number].part(200, 300)
    for one, parts in zip(record(name), (1, 2), strict=True):
        for entries in np.split(one.entries, parts):
            ips = addresses(entries)
            entered = int(np.argmax((ips >= first) & (ips <= last)))
            traced = (entries & TRACED) != 0
            assert traced[:entered].all() if number == REAL else traced[:entered].any()
            assert not traced[entered:].any()
        assert one.status & STOPPED
        assert len(one.stops) == parts
        assert one.stops[-1] == one.trace.streams[0].size - 2
        events = one.trace.events(kind="STOP", columns=["offset"])
        assert events["offset"].tolist() == one.stops
        gaps = one.trace.gaps
        assert gaps["cause"].tolist() == [GapCause.TRACE_STOP] * parts
        assert gaps["begin"].tolist() == one.stops


def test_trace_stop_needs_a_context_that_is_traced(record: Callable[[str], list[Recording]]) -> None:
    for one in record("TraceStop in real-address code, CTL.User"):
        assert not one.status & STOPPED
        assert one.stops == []
