"""Checks of timing packets."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ptkit import PacketKind, msr
from ptkit.selftest import programs
from ptkit.selftest.bench import Bench, Taken
from ptkit.selftest.compare import expect_all
from ptkit.selftest.control_flow import all_programs
from ptkit.selftest.outcome import CheckFailed
from ptkit.selftest.timing import Clock, Packets, contradictions, cycles_per_tick

__all__ = ["check_cyc", "check_mtc", "check_no_time", "check_tsc"]

_ROUNDS = 100_000
_USUAL_PERIOD = 3
_TIMES = (PacketKind.TSC, PacketKind.TMA, PacketKind.MTC, PacketKind.CYC)
_KINDS = (*_TIMES, PacketKind.CBR, PacketKind.OVF, PacketKind.TIP_PGD)


def check_no_time(bench: Bench) -> str:
    """Record without timing packets; a thread of its own says which process it is."""
    program = all_programs(bench)[0]
    taken = bench.record(program, timing=(), return_compression=False, per_thread=True)
    counts = taken.trace.packet_counts()
    for kind in _TIMES:
        if counts[kind]:
            raise CheckFailed(f"{counts[kind]} {kind.name} packets, and none were asked for")
    return expect_all(taken.rows(), bench.executed(program))


def check_tsc(bench: Bench) -> str:
    """Record with TSC packets alone."""
    return _check(bench, "tsc")


def check_mtc(bench: Bench) -> str:
    """Record with TSC, TMA and MTC packets."""
    return _check(bench, "tsc", "mtc")


def check_cyc(bench: Bench) -> str:
    """Record with TSC, TMA, MTC and CYC packets."""
    return _check(bench, "tsc", "mtc", "cyc")


def _period() -> int:
    """MTCFreq: the usual one, or the next that the processor has."""
    able = [value for value in range(16) if msr.capabilities().mtc_periods >> value & 1]
    return min((value for value in able if value >= _USUAL_PERIOD), default=max(able, default=_USUAL_PERIOD))


def _check(bench: Bench, *timing: str) -> str:
    program = programs.spinning(_ROUNDS)
    period = {"mtc_period": _period()} if "mtc" in timing else {}
    taken = bench.record(program, timing=timing, return_compression=False, psb_period=2048, **period)
    clock = Clock(
        taken.trace.info.tsc_ctc_ratio, taken.trace.info.mtc_period or 0, taken.trace.info.max_nonturbo_ratio
    )
    counts = taken.trace.packet_counts()
    for name in timing:
        if not counts[PacketKind[name.upper()]]:
            raise CheckFailed(f"no {name.upper()} packet, and they were asked for")
    words = [f"{counts[PacketKind[name.upper()]]} {name.upper()}" for name in timing]
    for packets in _packets(taken):
        if problems := contradictions(packets, clock):
            raise CheckFailed("; ".join(problems))
        if "cyc" in timing and clock.ratio is not None:
            rate = cycles_per_tick(packets, clock.ratio, clock.mtc_period)
            words += [] if rate is None else [f"{rate:.2f} cycles for each TSC tick"]
    _expect_short(taken)
    return f"{', '.join(words)}: no contradiction"


def _expect_short(taken: Taken) -> None:
    """The trace cannot span more time than the recording took."""
    seconds = taken.trace.info.seconds
    if seconds is not None and seconds > taken.recording.seconds:
        raise CheckFailed(
            f"TSC packets span {seconds:.6f} s, and the recording took {taken.recording.seconds:.6f} s"
        )


def _packets(taken: Taken) -> Iterator[Packets]:
    """Timing packets of each stream."""
    for number in taken.streams:
        table = taken.trace.packets(stream=number, columns=["kind", "payload", "payload2"])
        timed = np.isin(table["kind"], _KINDS)
        columns = (table[name][timed] for name in ("kind", "payload", "payload2"))
        yield Packets(*columns)
