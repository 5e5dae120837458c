"""When threads ran, and where they waited."""

from __future__ import annotations

from abc import abstractmethod
from collections import defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ptkit import _core
from ptkit._core import CallKind, GapCause
from ptkit.errors import ConfigError
from ptkit.support.schema import schema_of
from ptkit.table import Columns, Table
from ptkit.table.cells import read_only
from ptkit.trace.calls import Calls

if TYPE_CHECKING:
    from collections.abc import Sequence

    from typing_extensions import Unpack

    from ptkit.decode import Query
    from ptkit.info import StreamInfo, TraceInfo
    from ptkit.table import TableContext
    from ptkit.trace.open_parts import OpenParts

__all__ = ["Threads"]

# Columns of frames that the tables are made of.
_FRAME_COLUMNS = [
    *("id", "parent", "call_ip", "how", "flags", "self_instructions", "tsc", "tsc_error", "end_tsc"),
    *("end_tsc_error", "untraced", "untraced_error", "switched", "switched_error", "lost", "lost_error"),
    *("pid", "tid", "stream", "space"),
]
_REFUSED = ("time", "instructions", "ip", "symbol", "module", "columns", "order")
_Thread: TypeAlias = tuple[int, int]  # pid and tid; -1: not known
_NO_LOSS = (GapCause.START, GapCause.FILTERED)


_WAITS, _PREEMPTED = 1, 2  # how a thread left its processor; 0: it is not known


class _Off(NamedTuple):
    """A thread is switched out for `length` ticks from `tsc` on, in a stream."""

    tsc: int
    length: int
    stream: int
    departure: int


class _On(NamedTuple):
    begin: int
    end: int
    stream: int
    departure: int  # at its end


class _Site(NamedTuple):
    """A system call instruction, and the call that led to its file; None: not known."""

    ip: int | None
    caller_ip: int | None
    space: int
    is_preempted: bool = False


_NOWHERE = _Site(None, None, 0)  # in no system call that is known


class Threads(Calls):
    """Methods of `Trace` about threads."""

    _open: OpenParts

    @property
    @abstractmethod
    def info(self) -> TraceInfo: ...

    def threads(self, **query: Unpack[Query]) -> Table:
        """How long each thread ran, waited and was preempted.

        Parameters
        ----------
        **query
            See `ptkit.decode.Query`. Threads, processes, processors, spaces and streams select frames.

        Returns
        -------
        Table
            A row for each thread that executed traced code, those that ran longest first. Columns of shape
            (rows,): ``pid``, ``tid`` (int32; see ``tid_known``), ``instructions`` (int64), ``running``
            (int64, TSC ticks: on a processor, by the recorded context switches; without
            ``switches_known``, in traced code), ``untraced`` (int64, TSC ticks: packets were disabled, in
            system calls for the most part, whether the thread slept or not; see ``untraced_known``: where
            switches are known, it is part of the others), ``waiting`` (int64, TSC ticks: switched out as it
            could not go on), ``waits`` (int64, how often), ``preempted`` (int64, TSC ticks: switched out
            otherwise), ``preemptions`` (int64, how often; these four if ``switches_known``), ``flags``
            (uint8; says what is known, and what is ``incomplete``). ``running_ns`` and so on are nanoseconds.

        Raises
        ------
        ConfigError, ColumnError, OutOfMemoryError
            As for `calls`.

        Notes
        -----
        Times begin where the thread is first known to run, and end where it last was. Records of switches
        by Linux 4.17 or later say whether a thread was preempted (``PERF_RECORD_MISC_SWITCH_OUT_PREEMPT``).
        By others, a thread that is switched out in a system call counts as waiting, elsewhere as preempted:
        the trace says where it was, not what it waited for. With ``incomplete``, data was lost, so that
        switches or calls may be missing: amounts are not exact. Times of frames are the least possible ones;
        those of emulated recordings are the emulation's.

        Examples
        --------
        >>> import ptkit
        >>> trace = ptkit.record(["true"])
        >>> threads = trace.threads()
        >>> int(threads["instructions"].sum()) == len(trace.instructions(columns=["cls"]))
        True
        """
        return self.threads_and_waits(**query)[0]

    def waits(self, **query: Unpack[Query]) -> Table:
        """Where each thread waited: system calls by the call that led there, and how long they took.

        Parameters
        ----------
        **query
            As for `threads`.

        Returns
        -------
        Table
            A row for each thread, system call and caller, those that took longest first. Columns of shape
            (rows,): ``pid``, ``tid`` (int32; see ``tid_known``), ``ip`` (uint64, address of the system call;
            without ``ip_known``, the thread was in none that is known), ``caller_ip`` (uint64, address: of
            the nearest call below it from another file; see ``caller_known``), ``space`` (uint32), ``count``
            (int64: how often the thread was switched out there; without ``is_switched``, system calls; with
            ``is_preempted``, it did not wait there, but was preempted),
            ``length`` (int64, TSC ticks: how long it was switched out; without ``is_switched``, how long
            packets were disabled there), ``flags`` (uint8). ``symbol`` and ``caller_symbol`` are names.

        Raises
        ------
        ConfigError, ColumnError, OutOfMemoryError
            As for `calls`.

        Notes
        -----
        As for `threads`.

        Examples
        --------
        >>> import ptkit
        >>> waits = ptkit.record(["true"]).waits()
        >>> int(waits["count"].sum()) > 0
        True
        """
        return self.threads_and_waits(**query)[1]

    def threads_and_waits(self, **query: Unpack[Query]) -> tuple[Table, Table]:
        """The tables that `threads` and `waits` give, of one decode.

        Parameters
        ----------
        **query
            As for `threads`.

        Returns
        -------
        tuple of Table

        Raises
        ------
        ConfigError, ColumnError, OutOfMemoryError
            As for `calls`.
        """
        for name in _REFUSED:
            if query.get(name) is not None:
                raise ConfigError(f"{name}: threads have all of their frames; leave it out")
        query["columns"] = _FRAME_COLUMNS
        return _thread_tables(
            self.calls(**query), self._open.opened.session, self.info.streams, self._open.context
        )


def _thread_tables(
    frames: Table, session: _core.Session, streams: Sequence[StreamInfo], context: TableContext
) -> tuple[Table, Table]:
    """Make the tables of `Trace.threads` and `Trace.waits`.

    Parameters
    ----------
    frames : Table
        Of `Trace.calls`, with `_FRAME_COLUMNS`.
    session : _core.Session
    streams : sequence of StreamInfo
        With first and last times.
    context : TableContext
    """
    threads_of, numbers = _numbered(frames)
    calls = _SystemCalls(frames, numbers)
    on = _switches(session, streams)
    lossy = _lossy_streams(frames, streams)
    threads, waits = _Rows("threads"), _Rows("waits")
    for number, thread in enumerate(threads_of):
        part = frames[np.flatnonzero(numbers == number)]
        lost = not lossy.isdisjoint(part["stream"].tolist())
        switched = thread[1] >= 0 and thread in on
        times = (
            _by_switches(sorted(on[thread]), calls, number) if switched else _by_frames(part, calls, number)
        )
        owner = {"pid": thread[0], "tid": thread[1], "tid_known": thread[1] >= 0}
        instructions = int(part["self_instructions"].sum())
        threads.add(owner | times.sums, instructions=instructions, incomplete=lost)
        for site, (count, length) in times.sites.items():
            ips = {"ip": site.ip or 0, "caller_ip": site.caller_ip or 0, "space": site.space}
            known: dict[str, int] = {
                "ip_known": site.ip is not None,
                "caller_known": site.caller_ip is not None,
            }
            known |= {"time_known": times.sums["time_known"], "is_switched": switched}
            known |= {"is_preempted": site.is_preempted}
            waits.add(owner | ips | known, count=count, length=length)
    both = threads.table(context, frames), waits.table(context, frames)
    order = np.lexsort((-both[0]["instructions"], -both[0]["running"]))
    return both[0][order], both[1][np.lexsort((-both[1]["count"], -both[1]["length"]))]


class _Times:
    """Of one thread: sums and flags by column, and how often and how long it was at each site."""

    def __init__(self, **sums: int) -> None:
        self.sums = sums
        self.sites: dict[_Site, list[int]] = {}

    def add(self, site: _Site, length: int) -> None:
        found = self.sites.setdefault(site, [0, 0])
        found[0] += 1
        found[1] += length


def _by_switches(runs: Sequence[_On], calls: _SystemCalls, thread: int) -> _Times:
    running = sum(one.end - one.begin for one in runs)
    times = _Times(running=running, time_known=True, switches_known=True)
    for off in _offs(runs):
        site = calls.around(off, thread)
        preempted = off.departure == _PREEMPTED or (off.departure != _WAITS and site.ip is None)
        times.add(site._replace(is_preempted=preempted), off.length)
    for names, preempted in ((("waits", "waiting"), False), (("preemptions", "preempted"), True)):
        found = [sums for site, sums in times.sites.items() if site.is_preempted == preempted]
        times.sums |= {name: sum(one[at] for one in found) for at, name in enumerate(names)}
    return times


def _by_frames(frames: Table, calls: _SystemCalls, thread: int) -> _Times:
    outer = frames[~frames["parent_known"] & frames["time_known"] & frames["end_time_known"]]
    known = len(outer) > 0
    times = _Times(time_known=known, untraced_known=known)
    times.sums |= {name: int(outer[name].sum()) for name in ("running", "untraced")}
    lengths = frames["untraced"][frames["how"] == CallKind.SYSCALL].tolist()
    for at, length in zip(np.flatnonzero(calls.threads == thread).tolist(), lengths, strict=True):
        times.add(calls.sites[at], length)
    return times


class _Rows:
    """Rows of a table, as they are made."""

    def __init__(self, table: str) -> None:
        self._schema = schema_of(table)
        self._columns: dict[str, list[int]] = {name: [] for name in self._schema.names("stored")}

    def add(self, row: dict[str, int], **more: int) -> None:
        """Add a row of values and flags by column; what is missing is 0."""
        row = row | more
        flags = self._schema.names("flag")
        row["flags"] = sum(self._schema.columns[name].mask for name in flags if row.get(name))
        for name, cells in self._columns.items():
            cells.append(row.get(name, 0))

    def table(self, context: TableContext, frames: Table) -> Table:
        """All rows, with the errors and gaps of the frames."""
        dtypes = self._schema.columns
        arrays = {one: read_only(np.array(cells, dtypes[one].dtype)) for one, cells in self._columns.items()}
        data = Columns(self._schema, len(arrays["flags"]), arrays, context=context)
        return Table(data, errors=frames.errors, gaps=frames.gaps)


def _numbered(frames: Table) -> tuple[list[_Thread], NDArray[np.intp]]:
    """All threads, and the number of the thread of each frame."""
    columns = []
    for name in ("pid", "tid"):
        values, known = np.asarray(frames[name]), frames.known(name)
        columns.append(values if known is None else np.where(known, values, -1))
    if not len(frames):
        return [], np.empty(0, np.intp)
    owners, numbers = np.unique(np.stack(columns, 1), axis=0, return_inverse=True)
    return [(pid, tid) for pid, tid in owners.tolist()], numbers.reshape(-1)


def _lossy_streams(frames: Table, streams: Sequence[StreamInfo]) -> set[int]:
    """Streams of which something was lost or not decoded."""
    found = {index for index, stream in enumerate(streams) if stream.losses}
    if frames.errors is not None:
        found.update(frames.errors["stream"].tolist())
    if frames.gaps is not None:
        found.update(frames.gaps["stream"][~np.isin(frames.gaps["cause"], _NO_LOSS)].tolist())
    return found


def _switches(session: _core.Session, streams: Sequence[StreamInfo]) -> dict[_Thread, list[_On]]:
    """When each thread ran, by the context switches of all streams; none of streams without times."""
    found: dict[_Thread, list[_On]] = defaultdict(list)
    recorded = [_core.stream_switches(session, index) for index in range(len(streams))]
    # Linux before 4.17 marks no thread as preempted, so that its records do not say that one waits.
    known = any(departure == _PREEMPTED for switches in recorded for *_, departure in switches)
    for index, (stream, unordered) in enumerate(zip(streams, recorded, strict=True)):
        switches = sorted(unordered, key=lambda one: one[0])
        if not switches or switches[0][0] == 0:
            continue
        if stream.tid is not None and stream.first_tsc is not None:
            switches.insert(0, (stream.first_tsc, -1 if stream.pid is None else stream.pid, stream.tid, 0))
        end = max(switches[-1][0], stream.last_tsc or 0)
        for (begin, pid, tid, _), (next_begin, *_, departure) in pairwise([*switches, (end, -1, -1, 0)]):
            if tid >= 0 and next_begin > begin:
                found[pid, tid].append(_On(begin, next_begin, index, departure if known else 0))
    return found


def _offs(runs: Sequence[_On]) -> list[_Off]:
    """When a thread was switched out between times at which it ran, on whichever processor."""
    return [
        _Off(one.end, after.begin - one.end, one.stream, one.departure)
        for one, after in pairwise(runs)
        if after.begin > one.end
    ]


class _SystemCalls:
    """Finds the system call that a thread was in at a time."""

    def __init__(self, frames: Table, threads: NDArray[np.intp]) -> None:
        rows = np.flatnonzero(frames["how"] == CallKind.SYSCALL)
        calls, callers = frames[rows], _callers(frames, rows)
        caller_ips = np.asarray(frames["call_ip"])[callers].tolist()
        self.threads = threads[rows]
        self.sites = [
            _Site(ip, caller_ip if caller >= 0 else None, space)
            for ip, caller_ip, caller, space in zip(
                calls.named("call_ip"), caller_ips, callers.tolist(), calls["space"].tolist(), strict=True
            )
        ]
        # By stream and thread, in the order of time.
        begins, ends = np.asarray(calls["tsc"]), np.asarray(calls["end_tsc"]) + calls["end_tsc_error"]
        streams = np.asarray(calls["stream"])
        order = np.lexsort((begins, self.threads, streams))
        order = order[np.asarray(calls["time_known"])[order]]
        keys = list(zip(streams[order].tolist(), self.threads[order].tolist(), strict=True))
        bounds = [at for at in range(len(keys)) if not at or keys[at] != keys[at - 1]]
        self._calls = {
            keys[first]: (begins[order[first:last]], ends[order[first:last]], order[first:last])
            for first, last in pairwise([*bounds, len(keys)])
        }

    def around(self, off: _Off, thread: int) -> _Site:
        """The site of the system call in which the thread was switched out."""
        if (off.stream, thread) not in self._calls:
            return _NOWHERE
        begins, ends, calls = self._calls[off.stream, thread]
        at = int(np.searchsorted(begins, off.tsc, side="right")) - 1
        return self.sites[calls[at]] if at >= 0 and off.tsc <= ends[at] else _NOWHERE


def _callers(frames: Table, calls: NDArray[np.intp]) -> NDArray[np.intp]:
    """Rows of the frames that were called from another file than these system calls; -1: none is known."""
    ids, parents = np.asarray(frames["id"]), np.asarray(frames["parent"])
    known = np.asarray(frames["parent_known"])
    has_names = "call_module" in frames
    modules = _modules(frames[calls]) if has_names else None
    found = np.full(len(calls), -1, np.intp)
    left, rows = np.arange(len(calls)), calls
    while modules is not None and len(left):
        left, rows = left[known[rows]], rows[known[rows]]
        above = np.minimum(np.searchsorted(ids, parents[rows]), len(ids) - 1)
        there = ids[above] == parents[rows]  # not where frames are selected
        left, rows = left[there], above[there]
        part = frames[rows]
        differs = part["call_known"] & (_modules(part) != modules[left])
        found[left[differs]] = rows[differs]
        left, rows = left[~differs], rows[~differs]
    return found


def _modules(frames: Table) -> NDArray[np.str_]:
    return np.array([name or "" for name in frames.named("call_module")], np.str_)
