"""How much of a trace waits in buffers, and is lost where they are full."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["DRAIN_PERIOD", "lost_shares"]

#: Seconds between two looks of the recorder (kPollInterval of src/capture/linux/session/recorder.cpp).
DRAIN_PERIOD = 0.020
_WATERMARK = 4  # the recorder is woken up when a fourth of a buffer is written
_ROUNDS = 3  # windows are repeated: what is left in a buffer at the end of one round meets the next


def lost_shares(
    windows: NDArray[np.float64], window_seconds: float, drains: ArrayLike, sizes: ArrayLike
) -> NDArray[np.float64]:
    """Which share of the trace is lost, by size of the buffers, if it goes on as in these windows.

    Parameters
    ----------
    windows : array of shape (settings, streams, windows)
        Bytes that the trace unit writes; a stream has a buffer.
    window_seconds : float
        Length of a window.
    drains : float or array of shape (n,)
        Bytes a second that the recorder takes from all buffers together.
    sizes : array of shape (n,)
        Bytes of a buffer.

    Returns
    -------
    array of shape (settings, n)
        From 0 to 1. Where more is written than taken, no size helps in the long run: it is at least
        1 - drain / rate.
    """
    size = np.asarray(sizes, np.float64)
    drain = np.broadcast_to(np.asarray(drains, np.float64), size.shape)
    total = windows.sum(axis=(1, 2))[:, None]
    mean = np.maximum(total, 1) / (windows.shape[2] * window_seconds)
    buffers = _Buffers(windows.shape[:2], size, drain * window_seconds)
    lost = buffers.lose(windows, window_seconds) / np.maximum(total, 1)
    share: NDArray[np.float64] = np.maximum(lost, 1 - drain / mean)
    return share


class _Buffers:
    """Buffers with several settings and of several sizes at once: shape (settings, sizes, streams)."""

    def __init__(
        self, shape: tuple[int, ...], sizes: NDArray[np.float64], capacity: NDArray[np.float64]
    ) -> None:
        settings, streams = shape
        self._sizes, self._capacity = sizes[:, None], capacity
        self._fill = np.zeros((settings, len(sizes), streams))
        self._waited = np.zeros((settings, len(sizes)))

    def _write(self, incoming: NDArray[np.float64]) -> NDArray[np.float64]:
        """Write a window; returns the bytes that are lost."""
        written = np.minimum(incoming, self._sizes - self._fill)
        self._fill += written
        lost: NDArray[np.float64] = (incoming - written).sum(axis=2)
        return lost

    def _take(self, window_seconds: float) -> None:
        """Take what a window permits, if the recorder looks in it."""
        self._waited += window_seconds
        due = (self._waited >= DRAIN_PERIOD) | (self._fill >= self._sizes / _WATERMARK).any(axis=2)
        waiting = self._fill.sum(axis=2)
        taken = np.where(due, np.minimum(waiting, self._capacity), 0)
        self._fill *= (1 - taken / np.maximum(waiting, 1))[:, :, None]
        self._waited[due & (taken == waiting)] = 0  # otherwise it goes on in the next window

    def lose(self, windows: NDArray[np.float64], window_seconds: float) -> NDArray[np.float64]:
        """The bytes that are lost in the last round: shape (settings, sizes)."""
        lost = np.zeros(self._waited.shape)
        for _ in range(_ROUNDS):
            lost[:] = 0
            for number in range(windows.shape[2]):
                lost += self._write(windows[:, None, :, number])
                self._take(window_seconds)
        return lost
