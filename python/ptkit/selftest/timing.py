"""Contradictions between the timing packets of one stream.

Sections of the Intel SDM vol. 3, "Intel Processor Trace": "Time Stamp Counter (TSC) Packet", "TMA Packet",
"Mini Time Counter (MTC) Packet", "Cycle Count (CYC) Packet", "Core:Bus Ratio (CBR) Packet".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ptkit._core import PacketKind

__all__ = ["Clock", "Packets", "contradictions"]

_TSC_BITS = 56
_CTC_BITS = 16
_MTC_BITS = 8
_CYCLE_TOLERANCE = 0.2  # frequencies change a little before CBR says so
_MISSING_TOLERANCE = 0.1
_LEAST_INTERVALS = 16
_UNCERTAIN = (PacketKind.TIP_PGD, PacketKind.OVF)  # clocks may stop, or packets are missing

Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class Packets:
    """Packets of one stream, in order.

    Attributes
    ----------
    kind, payload, payload2 : array
        As in the table of packets.
    """

    kind: NDArray[np.uint8]
    payload: NDArray[np.uint64]
    payload2: NDArray[np.uint64]

    def of(self, *kinds: PacketKind) -> NDArray[np.bool_]:
        """Say which packets are of these kinds."""
        return np.isin(self.kind, [int(kind) for kind in kinds])


@dataclass(frozen=True)
class Clock:
    """Clocks of the processor.

    Attributes
    ----------
    ratio : tuple of int or None
        TSC ticks to ticks of the crystal clock (CPUID 15H EBX, EAX).
    mtc_period : int
        MTCFreq.
    max_nonturbo_ratio : int or None
        The core:bus ratio at which the core runs as fast as the TSC.
    """

    ratio: tuple[int, int] | None
    mtc_period: int
    max_nonturbo_ratio: int | None


def contradictions(packets: Packets, clock: Clock) -> list[str]:
    """Say where timing packets contradict each other.

    Returns
    -------
    list of str
        The first contradiction of each kind.
    """
    found = [_tsc_goes_back(packets), _first_mtc(packets, clock.mtc_period), _mtc_steps(packets)]
    if clock.ratio is not None:
        found += [_crystal_clock(packets, clock.ratio), _mtc_count(packets, clock.ratio, clock.mtc_period)]
        if clock.max_nonturbo_ratio:
            found.append(_cycles(packets, clock.ratio, clock.mtc_period, clock.max_nonturbo_ratio))
    return [sentence for sentence in found if sentence]


def _signed(packets: NDArray[np.uint64]) -> Numbers:
    return packets.astype(np.int64)


def _first(mask: NDArray[np.bool_]) -> int | None:
    rows = np.flatnonzero(mask)
    return int(rows[0]) if len(rows) else None


def _tsc_goes_back(packets: Packets) -> str:
    tsc = _signed(packets.payload[packets.of(PacketKind.TSC)])
    steps = np.diff(tsc)
    at = _first((steps < 0) & (steps > -(1 << (_TSC_BITS - 1))))
    if at is None:
        return ""
    return f"TSC packet {at + 1} is {-int(steps[at])} ticks before the TSC packet before it"


@dataclass(frozen=True)
class _Anchors:
    """TSC packets with a TMA packet: times of both clocks."""

    row: NDArray[np.intp]
    edge: Numbers  # the TSC at which the crystal clock last changed
    ctc: Numbers


def _anchors(packets: Packets) -> _Anchors:
    rows = np.flatnonzero(packets.of(PacketKind.TSC, PacketKind.TMA))
    is_tma = packets.kind[rows] == int(PacketKind.TMA)
    pairs = np.flatnonzero(~is_tma[:-1] & is_tma[1:])
    tsc, tma = rows[pairs], rows[pairs + 1]
    edge = _signed(packets.payload[tsc]) - _signed(packets.payload2[tma])
    return _Anchors(tsc, edge, _signed(packets.payload[tma]))


def _due(anchors: _Anchors, ratio: tuple[int, int]) -> Numbers:
    """Ticks of the crystal clock between anchors, by the TSC."""
    numerator, denominator = ratio
    ticks = np.diff(anchors.edge)
    # Rounded; whole parts first, so that nothing overflows.
    rest = ticks % numerator * denominator
    due: Numbers = ticks // numerator * denominator + (rest + numerator // 2) // numerator
    return due


def _crystal_clock(packets: Packets, ratio: tuple[int, int]) -> str:
    anchors = _anchors(packets)
    due = _due(anchors, ratio)
    counted = np.diff(anchors.ctc)
    period = 1 << _CTC_BITS
    off = (counted - due + period // 2) % period - period // 2
    at = _first(np.abs(off) > 1)
    if at is None:
        return ""
    return (
        f"between TSC packets {at} and {at + 1} that have a TMA packet, the crystal clock advanced by"
        f" {int(counted[at]) % period} (modulo {period}), and by the TSC and CPUID 15H"
        f" ({ratio[0]}/{ratio[1]}) {int(due[at]) % period} are due"
    )


def _mtc_steps(packets: Packets) -> str:
    rows = np.flatnonzero(packets.of(PacketKind.MTC))
    values = _signed(packets.payload[rows])
    # TSC: the clock may have stopped before it.
    breaks = np.cumsum(packets.of(PacketKind.TSC, *_UNCERTAIN))[rows]
    steps = np.diff(values) % (1 << _MTC_BITS)
    at = _first((np.diff(breaks) == 0) & (steps != 1))
    if at is None:
        return ""
    expected = (int(values[at]) + 1) % (1 << _MTC_BITS)
    return f"MTC packet {at + 1} has the counter {int(values[at + 1])}, and {expected} is next"


def _first_mtc(packets: Packets, period: int) -> str:
    """The first MTC packet after a TMA packet against its CTC."""
    if period > _MTC_BITS:
        return ""  # CTC has bits of it that TMA packets do not have
    rows = np.flatnonzero(packets.of(PacketKind.TMA, PacketKind.MTC, PacketKind.TSC, *_UNCERTAIN))
    kinds = packets.kind[rows]
    pairs = np.flatnonzero((kinds[:-1] == int(PacketKind.TMA)) & (kinds[1:] == int(PacketKind.MTC)))
    ctc = _signed(packets.payload[rows[pairs]]) >> period
    values = _signed(packets.payload[rows[pairs + 1]])
    at = _first((values - ctc) % (1 << _MTC_BITS) > 1)
    if at is None:
        return ""
    return (
        f"after TMA packet {at} the first MTC packet has the counter {int(values[at])}, and by CTC and"
        f" MTCFreq {period} {(int(ctc[at]) + 1) % (1 << _MTC_BITS)} is due"
    )


def _mtc_count(packets: Packets, ratio: tuple[int, int], period: int) -> str:
    """MTC packets between two TSC packets against the time between them.

    They may be too few, as tracing may have been off, but not mostly.
    """
    if period > _MTC_BITS or not packets.of(PacketKind.MTC).any():
        return ""
    anchors = _anchors(packets)
    due = ((anchors.ctc[:-1] + _due(anchors, ratio)) >> period) - (anchors.ctc[:-1] >> period)
    there = np.diff(np.cumsum(packets.of(PacketKind.MTC))[anchors.row])
    at = _first(there > due + 1)
    if at is not None:
        return (
            f"between TSC packets {at} and {at + 1} that have a TMA packet there are {int(there[at])} MTC"
            f" packets, and {int(due[at])} are due by the TSC, CPUID 15H and MTCFreq {period}"
        )
    long = due >= _LEAST_INTERVALS
    share = float(np.median(there[long] / due[long])) if long.any() else 1.0
    if share > 1 - _MISSING_TOLERANCE:
        return ""
    return f"MTC packets come at {share:.2f} of the rate that the TSC, CPUID 15H and MTCFreq {period} give"


def _cycles(packets: Packets, ratio: tuple[int, int], period: int, max_nonturbo: int) -> str:
    """The median of core cycles between two MTC packets against the core:bus ratio."""
    measured = cycles_per_tick(packets, ratio, period)
    rates = _signed(packets.payload[packets.of(PacketKind.CBR)])
    if measured is None or not len(rates):
        return ""
    expected = float(np.median(rates)) / max_nonturbo
    if abs(measured / expected - 1) <= _CYCLE_TOLERANCE:
        return ""
    return (
        f"CYC packets count {measured:.2f} core cycles for each TSC tick, and CBR packets"
        f" ({int(np.median(rates))} of {max_nonturbo}) give {expected:.2f}"
    )


def cycles_per_tick(packets: Packets, ratio: tuple[int, int], period: int) -> float | None:
    """Return the median over pairs of MTC packets; None if there are too few."""
    rows = np.flatnonzero(packets.of(PacketKind.MTC))
    cyc = packets.of(PacketKind.CYC)
    if len(rows) <= _LEAST_INTERVALS or not cyc.any():
        return None
    cycles = np.diff(np.cumsum(np.where(cyc, packets.payload, 0).astype(np.int64))[rows])
    breaks = np.cumsum(packets.of(PacketKind.TSC, *_UNCERTAIN))[rows]
    cycles = cycles[np.diff(breaks) == 0]
    if len(cycles) < _LEAST_INTERVALS:
        return None
    ticks = (1 << period) * ratio[0] / ratio[1]
    return float(np.median(cycles)) / ticks
