"""Bytes of trace by packet kind and time: what a probe has, and what other settings are estimated from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ptkit._core import PacketKind
from ptkit.info import TraceInfo
from ptkit.table import Table

if TYPE_CHECKING:
    from ptkit.trace import Trace

__all__ = ["GROUPS", "KINDS", "PacketBytes", "PacketCounter", "count_bytes", "tsc_hz_of"]

KINDS = len(PacketKind)
#: Groups that the report has, and the kinds in each; PSB+ is a group of its own, and the rest is "other".
GROUPS = {
    "TNT": (PacketKind.TNT_8, PacketKind.TNT_64),
    "TIP": (PacketKind.TIP, PacketKind.TIP_PGE, PacketKind.TIP_PGD, PacketKind.FUP),
    "CYC": (PacketKind.CYC,),
    "MTC": (PacketKind.MTC,),
    "TSC": (PacketKind.TSC, PacketKind.TMA),
}
_PSB_GROUP = (PacketKind.PSB, PacketKind.PSBEND)
_COLUMNS = ("offset", "size", "kind", "flags", "tsc", "payload")
_MTC_PERIODS = 16
_MOST_CYCLES = 1 << 18  # CYC packets of a stream that thresholds are estimated from
_NS_PER_SECOND = 10**9


@dataclass(frozen=True)
class PacketBytes:
    """Bytes of the packets of all streams.

    Attributes
    ----------
    window_seconds : float
        Length of a window.
    windows : array of shape (streams, windows, 2, KINDS)
        Bytes of packets outside of PSB+, and within PSB+ (from PSB to PSBEND).
    overflows : array of shape (streams, windows)
        OVF packets.
    psb_period : int
        Bytes between PSBs that were asked for.
    psbs, early_psbs : int
        PSBs, and those less than half a period after the PSB before: tracing began there anew.
    mtc_counts : array of shape (16,)
        MTC packets that are left if the period is 2**index times as long.
    cycles : tuple of arrays
        For each stream, the payloads of its CYC packets in order.
    """

    window_seconds: float
    windows: NDArray[np.float64]
    overflows: NDArray[np.int64]
    psb_period: int
    psbs: int
    early_psbs: int
    mtc_counts: NDArray[np.int64]
    cycles: tuple[NDArray[np.uint64], ...]

    @property
    def seconds(self) -> float:
        """Length of all windows."""
        return float(self.windows.shape[1] * self.window_seconds)

    @property
    def by_kind(self) -> NDArray[np.float64]:
        """Bytes of all streams and windows: shape (2, KINDS)."""
        total: NDArray[np.float64] = self.windows.sum(axis=(0, 1))
        return total

    @property
    def total(self) -> int:
        """Bytes of all packets."""
        return int(self.windows.sum())

    @property
    def groups(self) -> dict[str, int]:
        """Bytes by group of `GROUPS`, of PSB+, and of all others."""
        outside, inside = self.by_kind
        found = {name: int(outside[list(kinds)].sum()) for name, kinds in GROUPS.items()}
        found["PSB+"] = int(inside.sum())
        return found | {"other": self.total - sum(found.values())}


def tsc_hz_of(info: TraceInfo) -> float | None:
    """TSC ticks a second; None if the recording does not say."""
    if info.tsc_hz:
        return info.tsc_hz
    if info.perf_time and info.perf_time[0]:
        mult, shift, _ = info.perf_time
        return _NS_PER_SECOND * 2.0**shift / mult
    return None


class PacketCounter:
    """Counts the packets of one stream, part by part.

    Parameters
    ----------
    first_tsc : int
        TSC at which the first window begins.
    ticks : float
        TSC ticks of a window.
    windows : int
        How many windows there are. Packets before the first and after the last one count in those.
    psb_period : int
        Bytes between PSBs that were asked for.
    """

    def __init__(self, first_tsc: int, ticks: float, windows: int, psb_period: int) -> None:
        self._first, self._ticks, self._period = first_tsc, ticks, psb_period
        self.bytes = np.zeros((windows, 2, KINDS))
        self.overflows = np.zeros(windows, np.int64)
        self.mtc_counts = np.zeros(_MTC_PERIODS, np.int64)
        self.psbs = self.early_psbs = 0
        self._psb_before: int | None = None
        self._cycles: list[NDArray[np.uint64]] = []
        self._cycle_count = 0

    def add(self, packets: Table) -> None:
        """Count the next rows of the table of packets."""
        kind = np.asarray(packets["kind"]).astype(np.int64)
        size, payload = np.asarray(packets["size"]), np.asarray(packets["payload"])
        windows = len(self.overflows)
        tsc = np.asarray(packets["tsc"]).astype(np.float64) - self._first
        window = np.where(np.asarray(packets["time_known"]), tsc / self._ticks, 0.0)
        window = np.clip(window, 0, windows - 1).astype(np.int64)
        within = np.asarray(packets["in_psb"]) | np.isin(kind, _PSB_GROUP)
        slot = (window * 2 + within) * KINDS + kind
        self.bytes += np.bincount(slot, size, self.bytes.size).reshape(self.bytes.shape)
        self.overflows += np.bincount(window[kind == PacketKind.OVF], minlength=windows)
        self._add_psbs(np.asarray(packets["offset"])[kind == PacketKind.PSB])
        mtc = payload[kind == PacketKind.MTC]
        self.mtc_counts += [np.count_nonzero(mtc % (1 << shift) == 0) for shift in range(_MTC_PERIODS)]
        self._add_cycles(payload[kind == PacketKind.CYC])

    def _add_psbs(self, offsets: NDArray[np.uint64]) -> None:
        for offset in offsets.tolist():
            early = self._psb_before is None or offset - self._psb_before < self._period / 2
            self.psbs += 1
            self.early_psbs += early
            self._psb_before = offset

    def _add_cycles(self, payloads: NDArray[np.uint64]) -> None:
        if self._cycle_count < _MOST_CYCLES:
            self._cycles.append(payloads.copy())
            self._cycle_count += len(payloads)

    @property
    def cycles(self) -> NDArray[np.uint64]:
        """Payloads of the first CYC packets."""
        return np.concatenate([np.empty(0, np.uint64), *self._cycles])


def _joined(counters: list[PacketCounter], window_seconds: float, psb_period: int) -> PacketBytes:
    return PacketBytes(
        window_seconds=window_seconds,
        windows=np.stack([one.bytes for one in counters]),
        overflows=np.stack([one.overflows for one in counters]),
        psb_period=psb_period,
        psbs=sum(one.psbs for one in counters),
        early_psbs=sum(one.early_psbs for one in counters),
        mtc_counts=np.sum([one.mtc_counts for one in counters], axis=0),
        cycles=tuple(one.cycles for one in counters),
    )


def count_bytes(
    trace: Trace, seconds: float, window_seconds: float, psb_period: int, *, complete: bool = False
) -> PacketBytes:
    """Count the packets of a recording.

    Parameters
    ----------
    trace : Trace
        The recording.
    seconds : float
        How long it was.
    window_seconds : float
        Length of a window.
    psb_period : int
        Bytes between PSBs that were asked for.
    complete : bool
        Nothing ran after the last time of the trace: time after it is not counted.
    """
    info = trace.info
    first, last = info.first_tsc, info.last_tsc
    span = 0 if first is None or last is None else last - first + 1
    hz = tsc_hz_of(info) or max(span, 1) / seconds
    length = span / hz if complete and span else max(seconds, span / hz)
    windows = max(1, int(np.ceil(length / window_seconds - 1e-9)))
    counters = []
    for index in range(len(info.streams)):
        counter = PacketCounter(first or 0, hz * window_seconds, windows, psb_period)
        for part in _parts(trace, index):
            counter.add(part)
        counters.append(counter)
    return _joined(counters, window_seconds, psb_period)


def _parts(trace: Trace, stream: int) -> Iterator[Table]:
    return trace.iter_packets(stream=stream, columns=_COLUMNS, reuse=True)
