"""Things that rows can be selected by: streams, processors, threads and processes of a trace."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from ptkit import _core
from ptkit.errors import ConfigError
from ptkit.support.arguments import LAST_ADDRESS, integers

if TYPE_CHECKING:
    from ptkit.decode.query import Query
    from ptkit.info import TraceInfo

#: First and last address, and the only space that is meant (None: every one).
Range: TypeAlias = tuple[int, int, int | None]
Ranges: TypeAlias = Callable[[str], list[Range]]

_LISTED = 5  # ids in a message
_LAST_ID = 2**31 - 1


def _anything(low: int, high: int) -> None:
    """Allow each interval of time."""


class Scope:
    """Finds the streams that a selection needs, and refuses what the trace does not have.

    Parameters
    ----------
    session : _core.Session
    info : TraceInfo
    symbol_ranges, module_ranges : callable
        Addresses of a function and of a module, by name.
    cr3_spaces : callable
        Address spaces of a CR3.
    check_time : callable
        Raises if the trace has no times in [low, high], in TSC ticks.
    """

    def __init__(
        self,
        session: _core.Session,
        info: TraceInfo,
        symbol_ranges: Ranges,
        module_ranges: Ranges,
        cr3_spaces: Callable[[int], list[int]],
        check_time: Callable[[int, int], None] = _anything,
    ) -> None:
        self.symbol_ranges = symbol_ranges
        self.module_ranges = module_ranges
        self.check_time = check_time
        self._cr3_spaces = cr3_spaces
        self._session = session
        self._info = info
        self._ids: list[set[tuple[int, int]]] | None = None

    @property
    def count(self) -> int:
        """Number of streams."""
        return len(self._info.streams)

    @property
    def spaces_count(self) -> int:
        """Number of address spaces."""
        return len(self._info.spaces)

    def threads_of(self, stream: int) -> set[tuple[int, int]]:
        """Processes and threads that a stream can have rows of; -1 where one is not known."""
        return self._threads()[stream]

    def streams(self, query: Query) -> tuple[int, ...]:
        """Streams that can have rows of a selection by stream, processor, thread and process.

        Raises
        ------
        ConfigError
            If the trace has no such stream, processor, thread or process.
        """
        count = self.count
        found: Iterable[int] = range(count)
        if query.get("stream") is not None:
            found = dict.fromkeys(stream_indices(query["stream"], count))
        if query.get("cpu") is not None:
            cpus = {stream.cpu: "" for stream in self._info.streams if stream.cpu is not None}
            wanted = _known("cpu", "processor", query["cpu"], cpus)
            found = [index for index in found if self._info.streams[index].cpu in wanted]
        if query.get("tid") is not None:
            tids = self.tids(query["tid"])
            found = [index for index in found if any(tid in tids for _, tid in self._threads()[index])]
        if query.get("pid") is not None:
            pids = self.pids(query["pid"])
            if not pids & self._pids_of_cr3():
                found = [index for index in found if any(pid in pids for pid, _ in self._threads()[index])]
        return tuple(found)

    def tids(self, wanted: Any) -> set[int]:
        """Check threads."""
        names = {tid: name for _, tid, name in self._info.threads if tid is not None}
        known = {tid: names.get(tid, "") for ids in self._threads() for _, tid in ids if tid >= 0}
        return _known("tid", "thread", wanted, names | known)

    def pids(self, wanted: Any) -> set[int]:
        """Check processes."""
        names = {pid: name for pid, tid, name in self._info.threads if pid is not None and pid == tid}
        known = {pid: names.get(pid, "") for ids in self._threads() for pid, _ in ids if pid >= 0}
        known |= {pid: names.get(pid, "") for pid in self._pids_of_cr3()}
        return _known("pid", "process", wanted, names | known)

    def spaces(self, query: Query) -> set[int] | None:
        """Check address spaces, by index and by CR3; None: none is selected."""
        found = None
        if query.get("space") is not None:
            there_are = {space: _space_text(*ids) for space, ids in enumerate(self._info.spaces)}
            found = _known("space", "address space", query["space"], there_are)
        if query.get("cr3") is not None:
            of_cr3 = self._spaces_of_cr3(query["cr3"])
            found = of_cr3 if found is None else found & of_cr3
        return found

    def _spaces_of_cr3(self, wanted: Any) -> set[int]:
        found: set[int] = set()
        for cr3 in integers("cr3", wanted, 0, LAST_ADDRESS):
            spaces = self._cr3_spaces(cr3)
            if not spaces:
                known = [f"{one:#x}" for _, one in self._info.spaces if one is not None]
                there_are = (
                    f"it has {', '.join(known[:_LISTED])}" if known else "it has no CR3 of any process"
                )
                more = f" and {len(known) - _LISTED} more (see trace.info, ptkit info)"
                raise ConfigError(
                    f"no CR3 {cr3:#x} in this trace: {there_are}{more if len(known) > _LISTED else ''}"
                )
            found.update(spaces)
        return found

    def _threads(self) -> list[set[tuple[int, int]]]:
        if self._ids is None:
            count = len(self._info.streams)
            self._ids = [_core.stream_threads(self._session, index) for index in range(count)]
        return self._ids

    def _pids_of_cr3(self) -> set[int]:
        """Processes that the CR3 value of a PIP packet can name, in any stream."""
        return {pid for pid, cr3 in self._info.spaces if pid is not None and cr3 is not None}


def stream_indices(wanted: Any, count: int) -> list[int]:
    """Check indices of streams."""
    found = integers("stream", wanted, 0, _LAST_ID, hint="see trace.streams")
    for one in found:
        if one >= count:
            there_are = "stream 0 only" if count == 1 else f"streams 0 to {count - 1}"
            raise ConfigError(f"no stream {one} in this trace: it has {there_are}")
    return found


def _space_text(pid: int | None, cr3: int | None) -> str:
    """Known facts of an address space."""
    known = [f"pid {pid}"] if pid is not None else []
    return ", ".join([*known, f"CR3 {cr3:#x}"] if cr3 is not None else known)


def _known(argument: str, noun: str, wanted: Any, there_are: Mapping[int, str]) -> set[int]:
    """Check that the trace has these ids, and return them."""
    found = integers(argument, wanted, 0, _LAST_ID)
    missing = [one for one in found if one not in there_are]
    if missing and not there_are:
        raise ConfigError(
            f"no {noun} {missing[0]}: the trace does not state of which {noun} it is; leave out {argument}"
        )
    if missing:
        raise ConfigError(f"no {noun} {missing[0]} in this trace: it has {_nearest(missing[0], there_are)}")
    return set(found)


def _nearest(wanted: int, there_are: Mapping[int, str]) -> str:
    """The nearest ids, in order, with names."""
    near = sorted(sorted(there_are, key=lambda one: (abs(one - wanted), one))[:_LISTED])
    texts = [f"{one} ({there_are[one]})" if there_are[one] else str(one) for one in near]
    more = len(there_are) - len(near)
    return ", ".join(texts) + (f" and {more} more (see trace.info, ptkit info)" if more else "")
