"""Timelines that are reduced until what is encoded of them fits into a size."""

from __future__ import annotations

from collections.abc import Callable
from math import exp, log
from typing import TYPE_CHECKING

from ptkit.errors import ConfigError

if TYPE_CHECKING:
    from ptkit.decode import CallTimeline

__all__ = ["fit_slices"]

# A step aims a little below the size; it keeps this part of the slices at least, as it cannot be undone.
_AIM, _KEPT = 0.985, 0.5
# Bytes grow as the number of slices to a power: compressed, whole slices take fewer bytes than merged ones.
_LEAST_POWER, _MOST_POWER = 0.35, 1.0
_CAREFUL = 1.15
_STEPS = 40


def fit_slices(timeline: CallTimeline, count: Callable[[], int], bytes_: int, size: int) -> None:
    """Reduce a timeline until it has at most `size` bytes, and little less.

    Parameters
    ----------
    timeline : CallTimeline
    count : callable
        Encodes the slices, and returns their bytes.
    bytes_ : int
        Those that they have now.
    size : int

    Raises
    ------
    ConfigError
        If the fewest slices have more bytes.
    """
    slices, power = len(timeline), _MOST_POWER
    for _ in range(_STEPS):
        if bytes_ <= size:
            return
        part = exp(log(_AIM * size / bytes_) / power)
        timeline.reduce(max(int(slices * max(part, _KEPT)), 1))
        found, left = count(), len(timeline)
        if left == slices:
            break
        if found < bytes_:
            measured = log(bytes_ / found) / log(slices / left)
            power = min(max(measured * _CAREFUL, _LEAST_POWER), _MOST_POWER)
        else:
            power = _MOST_POWER
        slices, bytes_ = left, found
    if bytes_ > size:
        raise ConfigError(f"the slices have at least {bytes_:,} bytes")
