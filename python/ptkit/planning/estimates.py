"""Rates, buffers and losses with other settings, computed from a probe."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ptkit.planning.backlog import lost_shares
from ptkit.planning.packet_bytes import PacketBytes
from ptkit.planning.settings import Settings, factors

__all__ = ["DEFAULT_BUFFER", "Consumer", "Estimate", "estimate"]

#: Bytes of a buffer if no size is given (kSizes of src/capture/linux/perf/sizes.cpp).
DEFAULT_BUFFER = 4 << 20
_LEAST_BUFFER = 1 << 16
_MOST_BUFFER = 1 << 30
_SAFE = 0.5  # share of the measured speed that buffers are planned for


@dataclass(frozen=True)
class Consumer:
    """The buffer and disk that take the trace.

    Attributes
    ----------
    bytes_per_second : float
        Of trace, from all buffers together.
    memory : int
        Bytes that a buffer may have; 0: not known.
    """

    bytes_per_second: float
    memory: int = 0


@dataclass(frozen=True)
class Estimate:
    """Estimate of a recording with some settings.

    Attributes
    ----------
    options : tuple of str
        Options of ``ptkit record``; those that are left out have their defaults.
    bytes_per_second : float
        Of all streams.
    largest : float
        Bytes a second of the stream and window with most.
    lost_share : float
        Expected loss with a buffer of the default size, from 0 to 1.
    buffer_bytes : int or None
        The smallest buffer that loses nothing if the recorder has half of its speed; None: there is none.
    overflow_windows : int
        Windows with as many bytes as those in which the trace unit overflowed (OVF).
    """

    options: tuple[str, ...]
    bytes_per_second: float
    largest: float
    lost_share: float
    buffer_bytes: int | None
    overflow_windows: int

    @property
    def is_lossless(self) -> bool:
        """Whether a buffer avoids all losses."""
        return self.buffer_bytes is not None and self.overflow_windows == 0


def _sizes(memory: int) -> NDArray[np.float64]:
    most = min(memory or _MOST_BUFFER, _MOST_BUFFER)
    sizes = [1 << bits for bits in range(_LEAST_BUFFER.bit_length() - 1, _MOST_BUFFER.bit_length())]
    return np.array([size for size in sizes if size <= max(most, _LEAST_BUFFER)], np.float64)


def estimate(
    found: PacketBytes, probe: Settings, wanted: Sequence[Settings], usual: Settings, consumer: Consumer
) -> list[Estimate]:
    """Estimate recordings with other settings.

    Parameters
    ----------
    found : PacketBytes
        Packets of the probe.
    probe : Settings
        Those of the probe.
    wanted : sequence of Settings
        Those to estimate, at least one.
    usual : Settings
        The defaults of ``ptkit record``.
    consumer : Consumer
        The buffer and disk that take the trace.
    """
    windows = np.stack([(found.windows * factors(found, probe, one)).sum(axis=(2, 3)) for one in wanted])
    sizes = _sizes(consumer.memory)
    drains = np.append(np.full(len(sizes), consumer.bytes_per_second * _SAFE), consumer.bytes_per_second)
    lost = lost_shares(windows, found.window_seconds, drains, np.append(sizes, DEFAULT_BUFFER))
    before = found.windows.sum(axis=(2, 3))[found.overflows > 0]
    overflowing = windows >= (before.min() if len(before) else np.inf)
    return [
        Estimate(
            options=one.words(usual),
            bytes_per_second=float(windows[number].sum() / found.seconds),
            largest=float(windows[number].max() / found.window_seconds),
            lost_share=float(lost[number, -1]),
            buffer_bytes=next((int(size) for size in sizes[lost[number, :-1] == 0]), None),
            overflow_windows=int(np.count_nonzero(overflowing[number])),
        )
        for number, one in enumerate(wanted)
    ]
