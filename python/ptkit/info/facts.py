"""Records of facts about a trace and its parts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ptkit.errors import TraceWarning

__all__ = ["MissingFile", "ModuleInfo", "ProcessInfo", "StreamInfo", "TraceFacts"]


@dataclass(frozen=True)
class StreamInfo:
    """One stream: packets, or branch records.

    Attributes
    ----------
    name : str
        Name that the recorder gives it; may be empty.
    kind : str
        ``"packets"`` (Processor Trace) or ``"branch records"`` (BTS, branch stacks; docs/branch-records.md).
    size : int
        Bytes.
    cpu, pid, tid : int or None
        Where and for whom it was recorded; None if that is not known or changes.
    space : int
        Address space that it begins in.
    switches : int
        Context switches that are known.
    losses : int
        Gaps where the recorder reports that bytes are missing.
    lost_bytes : int
        How many, as far as that is known.
    first_tsc, last_tsc : int or None
        First and last time, in TSC ticks; None if there is none in the 64 MiB at either end.
    """

    name: str
    kind: str
    size: int
    cpu: int | None
    pid: int | None
    tid: int | None
    space: int
    switches: int
    losses: int
    lost_bytes: int
    first_tsc: int | None = None
    last_tsc: int | None = None


@dataclass(frozen=True)
class MissingFile:
    """A file that the recording names and that was not found: code in it is not decoded.

    Attributes
    ----------
    path : str
        Where it was.
    build_id : str
        Hexadecimal; empty if it is not known.
    reason : str
        Why a file of this name was not taken; empty if there was none.
    """

    path: str
    build_id: str
    reason: str

    def __str__(self) -> str:
        about = [f"build-id {self.build_id}"] if self.build_id else []
        about += [self.reason] if self.reason else []
        return f"{self.path} ({'; '.join(about)})" if about else self.path


@dataclass(frozen=True)
class ModuleInfo:
    """A file that code was mapped from, where it was loaded in one address space.

    Attributes
    ----------
    path, build_id : str
        Of the file; the build-id (hexadecimal) may be empty.
    base : int
        Load address, which RVAs count from; see `Trace.locate`.
    size : int
        Bytes from there to the end of what is mapped of the file, as far as that is recorded; of a PE file
        that is given or found, its SizeOfImage.
    space : int
        Address space; 0: seen from all.
    """

    path: str
    build_id: str
    base: int
    size: int
    space: int


@dataclass(frozen=True)
class ProcessInfo:
    """A process of a trace.

    Attributes
    ----------
    pid : int
        Its number.
    name : str
        Of its first thread, or of any that has one; may be empty.
    threads : tuple of (int, str)
        (tid, name) of the threads that are known.
    spaces : tuple of (int, int or None)
        (index, CR3) of its address spaces.
    """

    pid: int
    name: str
    threads: tuple[tuple[int, str], ...]
    spaces: tuple[tuple[int, int | None], ...]


@dataclass(frozen=True)
class TraceFacts:
    """The members of `ptkit.TraceInfo`, which documents them."""

    source: str
    format: str
    engine: str
    bytes: int
    cpu: tuple[int, int, int] | None
    tsc_ctc_ratio: tuple[int, int] | None
    mtc_period: int | None
    max_nonturbo_ratio: int | None
    tsc_hz: int | None
    perf_time: tuple[int, int, int] | None
    rtit_ctl: int | None
    ip_payloads: str | None
    cs_base: int
    ranges: tuple[tuple[str, int, int], ...]
    streams: tuple[StreamInfo, ...]
    spaces: tuple[tuple[int | None, int | None], ...]
    threads: tuple[tuple[int | None, int | None, str], ...]
    files: tuple[tuple[str, str], ...]
    code_regions: int
    code_bytes: int
    missing_files: tuple[MissingFile, ...] = ()
    warnings: tuple[TraceWarning, ...] = ()
    modules: tuple[ModuleInfo, ...] = ()
    recording: dict[str, Any] = field(default_factory=dict)
    first_tsc: int | None = None
    last_tsc: int | None = None
    first_ns: int | None = None
    last_ns: int | None = None

    @property
    def by_linux(self) -> bool:
        """Whether the recorder ran on Linux, as those of ptkit and perf do."""
        return bool(self.recording.get("backend"))

    @property
    def processes(self) -> tuple[ProcessInfo, ...]:
        """Processes of the threads, address spaces and streams that are known, by number."""
        threads: dict[int, dict[int, str]] = {}
        spaces: dict[int, list[tuple[int, int | None]]] = {}
        for pid, tid, name in [*self.threads, *((one.pid, one.tid, "") for one in self.streams)]:
            if pid is not None:
                known = threads.setdefault(pid, {})
                if tid is not None:
                    known[tid] = known.get(tid) or name
        for index, (pid, cr3) in enumerate(self.spaces):
            if pid is not None:
                spaces.setdefault(pid, []).append((index, cr3))
        return tuple(
            _process(pid, threads.get(pid, {}), spaces.get(pid, [])) for pid in sorted({*threads, *spaces})
        )

    @property
    def seconds(self) -> float | None:
        """Seconds from the first to the last time; None if times or the clock are not known."""
        if self.first_ns is None or self.last_ns is None:
            return None
        return (self.last_ns - self.first_ns) / 1e9


def _process(pid: int, threads: dict[int, str], spaces: list[tuple[int, int | None]]) -> ProcessInfo:
    name = threads.get(pid) or next(filter(None, threads.values()), "")
    return ProcessInfo(pid, name, tuple(sorted(threads.items())), tuple(spaces))
