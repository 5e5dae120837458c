"""Memory that dropped tables have left, and that the next ones get."""

from __future__ import annotations

from ptkit import _core
from ptkit.support.arguments import LAST_ADDRESS, integer

__all__ = ["trim_memory"]


def trim_memory(keep: int = 0, *, limit: int | None = None) -> int:
    """Give memory that dropped tables have left back to the system.

    ptkit keeps such memory for the next tables, because fresh memory costs more than decoding: at most an
    eighth of the memory that the process may have (of its cgroup, or of the machine). What is idle for 10
    seconds goes back at the next call that reads a table.

    Parameters
    ----------
    keep : int
        Bytes that may stay idle.
    limit : int, optional
        From now on, keep at most so many bytes; 0: none.

    Returns
    -------
    int
        Bytes that were given back.
    """
    keep = integer("keep", keep, 0, LAST_ADDRESS)
    before = _core.pool_bytes()
    if limit is not None:
        _core.set_pool_limit(integer("limit", limit, 0, LAST_ADDRESS))
    _core.trim_memory(keep)
    return before - _core.pool_bytes()
