"""The result of a recording, and its progress."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from ptkit.errors import TraceWarning

__all__ = ["Progress", "Recording"]


@dataclass(frozen=True)
class Recording(os.PathLike[str]):
    """The result of a recording. It is accepted wherever a path is: as the path of the bundle.

    Attributes
    ----------
    path : pathlib.Path
        The bundle.
    earlier : pathlib.Path or None
        The recording that was at this path before: it was renamed.
    exit_status : int
        Of the program; 128 + signal if it was killed.
    backend : str
        Name of the back end that recorded; see `probe`.
    reason : str
        What better back ends lacked; empty if `backend` was given.
    seconds : float
        Wall time from the program's start to the end of the recording.
    instructions : int
        Executed by all threads while recording was on.
    branches : int
        Executed by all threads; 0 if the back end does not count them.
    streams : int
        One for each thread and program image.
    trace_bytes : int
        Bytes of Processor Trace in the bundle.
    bundle_bytes : int
        Size of the bundle.
    dropped_bytes : int
        Ring mode: bytes of Processor Trace that were overwritten.
    snapshots : int
        Ring mode: how often what was in the ring was kept.
    interrupted : bool
        Ctrl-C or `Recorder.stop` ended it.
    limited : bool
        ``max_instructions`` or a trigger ended it.
    unmatched : int
        Filters and triggers with a location that was never executed or mapped; each has a warning.
    warnings : list of TraceWarning
        What went wrong without stopping it.
    """

    path: Path
    exit_status: int
    backend: str
    reason: str = ""
    seconds: float = 0.0
    instructions: int = 0
    branches: int = 0
    streams: int = 0
    trace_bytes: int = 0
    bundle_bytes: int = 0
    dropped_bytes: int = 0
    snapshots: int = 0
    interrupted: bool = False
    limited: bool = False
    unmatched: int = 0
    earlier: Path | None = None
    warnings: list[TraceWarning] = field(default_factory=list)

    def __fspath__(self) -> str:
        return str(self.path)


@dataclass(frozen=True)
class Progress:
    """The progress of a recording.

    Attributes
    ----------
    instructions : int
        Executed so far.
    trace_bytes : int
        Bytes of Processor Trace so far; 0 if the back end does not say.
    seconds : float
        Wall time since the program's start.
    """

    instructions: int = 0
    trace_bytes: int = 0
    seconds: float = 0.0
