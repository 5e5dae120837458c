"""Names of processes and threads for timelines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ptkit.support.text import one_line

if TYPE_CHECKING:
    from ptkit.decode.timelines import Track
    from ptkit.info import TraceInfo

__all__ = ["track_names"]

_INSTRUCTIONS = " (1 ns is 1 instruction)"


def track_names(info: TraceInfo, tracks: Sequence[Track], *, is_time: bool) -> list[tuple[str, str]]:
    """Name the process and the thread of each track.

    Parameters
    ----------
    info : TraceInfo
        Has the names of threads, as far as the recorder knew them.
    tracks : sequence of Track
    is_time : bool
        Positions are times; else names of processes say that they are instructions.

    Returns
    -------
    list of tuple of str
        A process has the name of its first thread, else that of another one, else its number. Tracks without
        a thread have the number of their CPU or stream.
    """
    threads: dict[int, str] = {}
    processes: dict[int, str] = {}
    for pid, tid, name in info.threads:
        if not name:
            continue
        if tid is not None:
            threads.setdefault(tid, name)
        if pid is not None and (tid == pid or pid not in processes):
            processes[pid] = name
    more = "" if is_time else _INSTRUCTIONS
    found = []
    for track in tracks:
        where = f"stream {track.stream}" if track.cpu is None else f"CPU {track.cpu}"
        thread = where if track.tid is None else threads.get(track.tid, f"thread {track.tid}")
        process = where
        if track.pid is not None:
            process = processes.get(track.pid, f"process {track.pid}")
        elif track.tid is not None:
            process = thread
        found.append((one_line(process) + more, one_line(thread)))
    return found
