"""Settings of the trace unit, and how many bytes the packets of a probe would take with others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ptkit._core import PacketKind
from ptkit.planning.packet_bytes import KINDS, PacketBytes

__all__ = ["Settings", "cyc_share", "factors"]

_TIMING = ("tsc", "mtc", "cyc")
_FIRST_CYC_BITS, _MORE_CYC_BITS = 5, 7  # payload bits of a CYC packet's first byte, and of each further one


@dataclass(frozen=True)
class Settings:
    """Settings that decide how many bytes a trace unit writes.

    Attributes
    ----------
    timing : tuple of str
        Timing packets: any of ``"tsc"``, ``"mtc"``, ``"cyc"``.
    mtc_period : int
        IA32_RTIT_CTL.MTCFreq.
    cyc_threshold : int
        IA32_RTIT_CTL.CycThresh.
    psb_period : int
        Bytes between PSBs.
    """

    timing: tuple[str, ...] = ("tsc", "mtc")
    mtc_period: int = 3
    cyc_threshold: int = 0
    psb_period: int = 4096

    def words(self, usual: Settings) -> tuple[str, ...]:
        """Options of ``ptkit record`` for what differs from the usual settings."""
        found: list[str] = []
        if set(self.timing) != set(usual.timing):
            found += ["--timing", ",".join(name for name in _TIMING if name in self.timing) or "none"]
        if "mtc" in self.timing and self.mtc_period != usual.mtc_period:
            found += ["--mtc-period", str(self.mtc_period)]
        if "cyc" in self.timing and self.cyc_threshold != usual.cyc_threshold:
            found += ["--cyc-threshold", str(self.cyc_threshold)]
        if self.psb_period != usual.psb_period:
            found += ["--psb-period", str(self.psb_period)]
        return tuple(found)


def _cyc_bytes(cycles: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Bytes of CYC packets with these payloads."""
    sizes = np.ones(len(cycles), np.int64)
    rest = cycles >> np.uint64(_FIRST_CYC_BITS)
    while rest.any():
        sizes += rest != 0
        rest = rest >> np.uint64(_MORE_CYC_BITS)
    return sizes


def _with_threshold(cycles: NDArray[np.uint64], least: int) -> NDArray[np.uint64]:
    """Payloads of the CYC packets that are left if one is written only after so many cycles."""
    clock = np.cumsum(cycles)
    next_of = np.searchsorted(clock, np.concatenate([[0], clock]).astype(np.uint64) + np.uint64(least))
    steps, at, kept = next_of.tolist(), 0, []
    while at < len(steps) and steps[at] < len(clock):
        kept.append(steps[at])
        at = steps[at] + 1
    times = clock[kept]
    return np.diff(times, prepend=np.uint64(0))


def cyc_share(found: PacketBytes, threshold: int) -> float:
    """Share of the bytes of CYC packets that is left with a threshold; the probe had none."""
    before = sum(int(_cyc_bytes(cycles).sum()) for cycles in found.cycles)
    if threshold == 0 or before == 0:
        return 1.0
    least = 1 << (threshold - 1)
    return sum(int(_cyc_bytes(_with_threshold(one, least)).sum()) for one in found.cycles) / before


def _mtc_share(found: PacketBytes, longer: int) -> float:
    """MTC packets with a period 2**longer times as long, as a multiple of those that are there."""
    if longer <= 0:
        return 2.0**-longer
    return float(found.mtc_counts[longer] / found.mtc_counts[0]) if found.mtc_counts[0] else 0.0


def factors(found: PacketBytes, probe: Settings, wanted: Settings) -> NDArray[np.float64]:
    """Factors for bytes, outside and within PSB+, by kind: shape (2, KINDS).

    Parameters
    ----------
    found : PacketBytes
        The probe's packets.
    probe : Settings
        The probe's settings: with all packets that are wanted, and with cyc_threshold 0.
    wanted : Settings
        Settings to estimate.

    Notes
    -----
    CYC packets before MTC packets that are no longer written are still counted.
    """
    result = np.ones((2, KINDS))
    if "tsc" not in wanted.timing:
        result[:, [PacketKind.TSC, PacketKind.TMA]] = 0
    if "mtc" not in wanted.timing:
        result[:, [PacketKind.MTC, PacketKind.TMA]] = 0
    else:
        result[:, PacketKind.MTC] = _mtc_share(found, wanted.mtc_period - probe.mtc_period)
    if "cyc" in wanted.timing:
        result[:, PacketKind.CYC] = cyc_share(found, wanted.cyc_threshold)
    else:
        result[:, PacketKind.CYC] = 0
    result[1] *= _psb_share(found, result, wanted.psb_period / probe.psb_period)
    return result


def _psb_share(found: PacketBytes, changed: NDArray[np.float64], longer: float) -> float:
    """PSB+ with a period `longer` times as long, as a multiple of those that are there.

    With `size` bytes of a PSB+, one each `interval` bytes, and some early ones besides:
    total = others + early * size + total / interval * size.
    """
    periodic = found.psbs - found.early_psbs
    if periodic == 0:
        return 1.0
    others, within = (found.by_kind * changed).sum(axis=1)
    size = within / found.psbs
    interval = found.total / periodic * longer
    total = (others + found.early_psbs * size) / (1 - min(size / interval, 0.5))
    return float((found.early_psbs + total / interval) / found.psbs)
