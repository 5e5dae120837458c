"""Threads of a run: each one's branches, read straight from its streams or from a spool."""

from __future__ import annotations

import tempfile
import weakref
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import IO, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ptkit import _core
from ptkit.analysis.diff.sequence import COLUMNS, Arrays, Loss, arrays_of, losses_of
from ptkit.info import ModuleInfo, TraceInfo
from ptkit.support.schema import schema_of
from ptkit.support.text import module_name
from ptkit.table import Table

__all__ = ["Part", "Run", "Strand", "is_system", "strands_of", "times_at"]

_IN_MEMORY = 1 << 26  # bytes of a spool, before it goes to a file
_READ_ROWS = 1 << 16
_SPOOLED = np.dtype(
    [
        *(("from_ip", "<u8"), ("to_ip", "<u8"), ("instruction", "<i8"), ("stream", "<u4"), ("space", "<u4")),
        *(("kind", "u1"), ("flags", "u1")),
    ]
)
_KERNEL = 1 << 63
_SYSTEM_FOLDERS = ("/lib/", "/lib32/", "/lib64/", "/libx32/", "/usr/lib/", "/usr/lib32/", "/usr/lib64/")
_WINDOWS_FOLDERS = ("c:\\windows\\", "\\windows\\", "\\systemroot\\", "\\device\\harddiskvolume")

_Parts = Iterator[tuple[Mapping[str, NDArray[Any]], list[Loss]]]


class Part(Protocol):
    """A trace or a part of one, as far as it is needed here."""

    def iter_branches(self, *, rows: int | None = None, reuse: bool = False, **query: Any) -> Iterator[Table]:
        """Branches in parts."""

    def calls(self, **query: Any) -> Table:
        """Frames."""

    def functions(self, **query: Any) -> Table:
        """Sums by function or line."""

    def call_tree(self, **query: Any) -> Table:
        """Sums by calling context."""


@dataclass(frozen=True)
class Run:
    """One of the two runs.

    Attributes
    ----------
    part : Part
        What is compared.
    trace : Part
        The trace that it is of, for stacks.
    info : TraceInfo
    session : _core.Session
    stream : int, optional
        The only stream that `part` has rows of.
    """

    part: Part
    trace: Part
    info: TraceInfo
    session: _core.Session
    stream: int | None = None

    @classmethod
    def of(cls, part: Any) -> Run:
        """A trace, or a part of one: `ptkit.Trace`, `View` or `Slice`."""
        whole = part._whole()
        return cls(part, whole, whole.info, whole.opened.session, part._one_stream())


@dataclass(eq=False)
class Strand:
    """A thread while it executes one program.

    Attributes
    ----------
    run : Run
    pid, tid : int
        -1: not known.
    space : int
    name : str
        Of the thread.
    program : str
        Path of the file that its process executes; empty: not known.
    streams : tuple of int
        Those with its rows alone, in their order; empty: its rows are in the spool.
    """

    run: Run
    pid: int
    tid: int
    space: int
    name: str
    program: str
    streams: tuple[int, ...] = ()
    spool: IO[bytes] | None = None
    losses: list[Loss] = field(default_factory=list)

    @property
    def text(self) -> str:
        """Name and number of the thread."""
        number = f"tid {self.tid}" if self.tid >= 0 else "thread of no known number"
        return f"{self.name} ({number})" if self.name else number

    def parts(self) -> _Parts:
        """Its branches in parts, and what was lost in each; a part is valid until the next one."""
        if self.spool is not None:
            yield from self._spooled(self.spool)
            return
        for stream in self.streams:
            query: dict[str, Any] = {"stream": stream, "columns": COLUMNS, "errors": "rows"}
            for part in self.run.part.iter_branches(reuse=True, **query):
                yield arrays_of(part), losses_of(part)

    def _spooled(self, spool: IO[bytes]) -> _Parts:
        columns = schema_of("branches").columns
        losses, at = list(self.losses), 0
        while True:
            spool.seek(at)
            rows = np.frombuffer(spool.read(_READ_ROWS * _SPOOLED.itemsize), _SPOOLED)
            if not len(rows):
                return
            at += rows.nbytes
            arrays: Arrays = {name: np.ascontiguousarray(rows[name]) for name in COLUMNS}
            for name, flag in (("known", "from_known"), ("to_known", "to_known")):
                arrays[name] = (arrays["flags"] & columns[flag].mask) != 0
            yield arrays, losses
            losses = []


def is_system(path: str) -> bool:
    """Whether a file is of the system: a library that programs share, or the kernel's."""
    lower = path.lower()
    return (
        path.startswith(_SYSTEM_FOLDERS)
        or lower.startswith(_WINDOWS_FOLDERS)
        or path.startswith("[")
        or not path
    )


def _programs(modules: tuple[ModuleInfo, ...]) -> dict[int, str]:
    """Path of the program of each address space: its file at the lowest address, but for the loader."""
    found: dict[int, tuple[int, str]] = {}
    for module in modules:
        name = module_name(module.path)
        if module.base >= _KERNEL or name.startswith(("ld-", "ld.so", "[", "lib")):
            continue
        if module.space not in found or module.base < found[module.space][0]:
            found[module.space] = module.base, module.path
    return {space: path for space, (_, path) in found.items()}


def strands_of(run: Run) -> tuple[list[Strand], list[Loss]]:
    """Threads of a run, in the order in which they were created, and losses of no known thread."""
    info = run.info
    programs = _programs(info.modules)
    names = {tid: name for _, tid, name in info.threads if tid is not None}
    direct: dict[tuple[int, int, int], list[int]] = {}
    shared = []
    for number, stream in enumerate(info.streams):
        if run.stream not in (None, number):
            continue
        is_alone = stream.tid is not None or (len(info.streams) == 1 and len(info.threads) <= 1)
        if stream.switches or not is_alone:
            shared.append(number)
            continue
        key = _number(stream.pid), _number(stream.tid), stream.space
        direct.setdefault(key, []).append(number)
    found = []
    for (pid, tid, space), streams in direct.items():
        streams.sort(key=lambda number: info.streams[number].first_tsc or 0)
        program = programs.get(space, programs.get(0, ""))
        found.append(Strand(run, pid, tid, space, names.get(tid, ""), program, tuple(streams)))
    found.sort(key=lambda one: (info.streams[one.streams[0]].first_tsc or 0, one.tid))
    if not shared:
        return found, []
    more, lost = _spooled_strands(run, shared, names, programs)
    return [*found, *more], lost


def _number(one: int | None) -> int:
    return -1 if one is None else one


def _spooled_strands(
    run: Run, streams: list[int], names: Mapping[int, str], programs: Mapping[int, str]
) -> tuple[list[Strand], list[Loss]]:
    """Threads of streams that have several, each with a spool of its branches."""
    strands: dict[tuple[int, int, int], Strand] = {}
    met: dict[int, list[Strand]] = {number: [] for number in streams}
    losses: list[Loss] = []
    columns = [*COLUMNS, "pid", "tid"]
    order = {"order": "time"} if len(streams) > 1 else {"reuse": True}
    query: dict[str, Any] = {
        "stream": streams if run.stream is None else run.stream,
        "columns": columns,
        "errors": "rows",
        **order,
    }
    for part in run.part.iter_branches(**query):
        losses += losses_of(part)
        pids, tids = (np.where(part["tid_known"], part[name], -1) for name in ("pid", "tid"))
        spaces = np.asarray(part["space"])
        if not len(spaces):
            continue
        rows = np.empty(len(spaces), _SPOOLED)
        for name in COLUMNS:
            rows[name] = part[name]
        # A thread of the kernel's code has the space of the process that it interrupted.
        changes = np.flatnonzero(
            (pids[1:] != pids[:-1]) | (tids[1:] != tids[:-1]) | (spaces[1:] != spaces[:-1])
        )
        limits = [0, *(changes + 1).tolist(), len(rows)]
        for begin, end in pairwise(limits):
            key = int(pids[begin]), int(tids[begin]), int(spaces[begin])
            strand = strands.get(key)
            if strand is None:
                pid, tid, space = key
                program = programs.get(space, programs.get(0, ""))
                strand = Strand(run, pid, tid, space, names.get(tid, ""), program)
                strand.spool = tempfile.SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 (kept by the strand)
                weakref.finalize(strand, strand.spool.close)
                strands[key] = strand
            assert strand.spool is not None
            strand.spool.write(rows[begin:end].tobytes())
            for stream in np.unique(rows["stream"][begin:end]).tolist():
                if strand not in met[stream]:
                    met[stream].append(strand)
    for loss in losses:
        for strand in met[loss.stream]:
            strand.losses.append(loss)
    return list(strands.values()), [loss for loss in losses if not met[loss.stream]]


def times_at(part: Part, stream: int, instructions: NDArray[np.int64]) -> NDArray[np.int64]:
    """TSC of the first branch of a stream at or after each instruction; -1: none, or no known time."""
    order = np.argsort(instructions, kind="stable")
    wanted = instructions[order]
    found = np.full(len(wanted), -1, np.int64)
    done = 0
    columns = ["instruction", "tsc", "time_known"]
    for rows in part.iter_branches(reuse=True, stream=stream, columns=columns):
        if done == len(wanted):
            break
        numbers = np.asarray(rows["instruction"]).astype(np.int64, copy=False)
        if not len(numbers) or numbers[-1] < wanted[done]:
            continue
        end = int(np.searchsorted(wanted, numbers[-1], side="right"))
        at = np.searchsorted(numbers, wanted[done:end])
        found[order[done:end]] = np.where(rows["time_known"][at], rows["tsc"][at].astype(np.int64), -1)
        done = end
    return found
