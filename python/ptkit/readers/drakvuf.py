"""Streams of DRAKVUF's ipt plugin: one raw file for each virtual CPU of the guest.

DRAKVUF inserts PTW packets while the guest is paused: they name the running thread and the event of DRAKVUF's
logs. The core finds them (formats/foreign/drakvuf_scan).
"""

from __future__ import annotations

import os

import numpy as np
import numpy.typing as npt

from ptkit import _core
from ptkit.errors import FormatError, OpenError
from ptkit.readers.drakvuf_log import Log
from ptkit.readers.files import add_cpu_streams, file_in, number_in_name, numbered_files
from ptkit.readers.recording import PSB_SEARCH_BYTES, Reader, Source, first_bytes, new_recording
from ptkit.support.arguments import LAST_ADDRESS
from ptkit.support.inputs import map_regular

__all__ = ["DRAKVUF"]

_STREAM = "ipt_stream_vcpu"
_LOGS = ("codemon.log", "ipt.log", "drakmon.log")
_PAGE_FOLDERS = ("dumps", "frames", "../dumps")
_PAGE_BYTES = 4096
_PAGE = _PAGE_BYTES - 1
_HALF = 0xFFFF_FFFF & ~_PAGE
_CTL = 1 << 0 | 1 << 2 | 1 << 3 | 1 << 11 | 1 << 13  # TraceEn, OS, User, DisRETC, BranchEn
_CR3, _TID = 0xC300_0000, 0x1D00_0000  # marks (trace::DrakvufMark)
_PTW_BYTES = 10
_NOT_KNOWN = -1
_KERNEL = 1 << 63


class _Loader:
    def __init__(self, source: Source, folder: str) -> None:
        self.recording = new_recording()
        self.recording.set_rtit_ctl(_CTL)
        self._folder = folder
        self._name = os.fsencode(source.path)
        self._path = source.path
        self._log = Log()
        self._spaces: dict[int, int] = {}  # by CR3
        self._by_half: dict[int, int] = {}  # CR3 by its lower half
        self._no_data = 0

    def load(self, files: dict[int, str]) -> _core.Bundle:
        self._read_logs()
        for stream, _, _ in add_cpu_streams(self.recording, self._path, files):
            self._add_switches(stream)
        self._add_code()
        if self._no_data:
            self._warn("DRAKVUF_EVENTS_UNTRACED", self._no_data)
        return self.recording

    def _warn(self, code: str, count: int) -> None:
        _core.add_warning(self.recording, code, [str(count)], self._name)

    def _read_logs(self) -> None:
        log = self._log
        for name in _LOGS:
            for folder in (self._folder, os.path.join(self._folder, "..")):  # noqa: PTH118
                path = os.path.join(folder, name)  # noqa: PTH118
                if not os.path.isfile(path):  # noqa: PTH113
                    continue
                try:
                    log.read(map_regular(path))
                except OpenError:
                    continue
                break
        if log.bad_lines:
            self._warn("DRAKVUF_LINES_SKIPPED", log.bad_lines)
        if log.taken_over:
            self._warn("DRAKVUF_CR3_REUSED", len(log.taken_over))
        for cr3 in sorted(log.processes):
            self._space_of(cr3)
            self._by_half.setdefault(cr3 & _HALF, cr3)
        for (pid, tid), name in sorted(log.threads.items()):
            _core.add_thread(self.recording, pid, tid, name.encode(errors="replace"))

    def _space_of(self, cr3: int) -> int:
        tables = cr3 & ~_PAGE
        if tables not in self._spaces:
            pid = self._log.processes.get(tables)
            self._spaces[tables] = self.recording.add_space(pid=pid, cr3=tables)
        return self._spaces[tables]

    def _page_tables(
        self,
        offsets: npt.NDArray[np.uint64],
        halves: npt.NDArray[np.uint64],
        pips: npt.NDArray[np.uint64],
        cr3: npt.NDArray[np.uint64],
    ) -> npt.NDArray[np.uint64]:
        """Return CR3 of marks, which have half of it.

        The other half comes from the next PIP, from page tables that the logs name, or from any other PIP.
        """
        values, inverse = np.unique(halves, return_inverse=True)
        known = [self._by_half[half] & ~_PAGE if half in self._by_half else half for half in values.tolist()]
        found = np.array(known, dtype=np.uint64)[inverse.ravel()]
        if len(pips):
            following = np.searchsorted(pips, offsets)
            is_near = following < len(pips)
            following = np.minimum(following, len(pips) - 1)
            until = np.append(offsets[1:], np.uint64(LAST_ADDRESS))
            is_near &= (pips[following] < until) & (cr3[following] & np.uint64(_HALF) == halves)
            found = np.where(is_near, cr3[following] & ~np.uint64(_PAGE), found)
        return np.asarray(found, dtype=np.uint64)

    def _add_switches(self, stream: int) -> None:
        offsets, marks, data, pips, cr3, no_data = _core.scan_drakvuf(self.recording, stream)
        self._no_data += no_data
        values, first = np.unique(cr3 & np.uint64(_HALF), return_index=True)
        for half, value in zip(values.tolist(), cr3[first].tolist(), strict=True):
            self._by_half.setdefault(half, value)
        is_cr3, is_tid = marks == _CR3, marks == _TID
        tables = self._page_tables(
            offsets[is_cr3], data[is_cr3].astype(np.uint64) & np.uint64(_HALF), pips, cr3
        )
        unique, order, inverse = np.unique(tables, return_index=True, return_inverse=True)
        numbers = np.zeros(len(unique), dtype=np.uint32)
        pids = np.full(len(unique), _NOT_KNOWN, dtype=np.int64)
        for at in np.argsort(order).tolist():  # spaces come in the order of the stream
            numbers[at] = self._space_of(int(unique[at]))
            pids[at] = self._log.processes.get(int(unique[at]), _NOT_KNOWN)
        # Switches are marks of a CR3, with the TID that follows at once, and other marks of a TID.
        follows = np.zeros(len(marks), dtype=np.bool_)
        follows[1:] = is_tid[1:] & is_cr3[:-1] & (offsets[1:] == offsets[:-1] + np.uint64(_PTW_BYTES))
        with_tid = np.append(follows[1:], False)
        rows = np.flatnonzero(is_cr3 | (is_tid & ~follows))
        tid = np.where(is_tid, data, _NOT_KNOWN).astype(np.int64)
        tid[:-1] = np.where(with_tid[:-1], data[1:], tid[:-1])
        last = np.cumsum(is_cr3)[rows] - 1  # the mark of a CR3 that is in force
        space_numbers = np.append(numbers[inverse.ravel()], np.uint32(0))
        space_pids = np.append(pids[inverse.ravel()], _NOT_KNOWN)
        _core.set_switches(
            self.recording, stream, offsets[rows], space_pids[last], tid[rows], space_numbers[last]
        )

    def _add_code(self) -> None:
        contents: dict[str, bytes | None] = {}
        missing = 0
        saved: dict[tuple[int, int], bytes] = {}  # by physical and virtual address
        own: set[tuple[int, int]] = set()  # CR3 and address
        for cr3, address, physical, file in self._log.pages:
            if file not in contents:
                contents[file] = self._read_page(file)
                missing += contents[file] is None
            page = contents[file]
            if page is None:
                continue
            saved[physical, address] = page
            own.add((cr3, address))
            self._add_page(cr3, address, page)
        for cr3, address, physical in self._log.faults:
            page = saved.get((physical, address))
            if page is not None and (cr3, address) not in own:
                own.add((cr3, address))
                self._add_page(cr3, address, page)
        if missing:
            self._warn("DRAKVUF_PAGES_MISSING", missing)

    def _read_page(self, name: str) -> bytes | None:
        for folder in _PAGE_FOLDERS:
            path = file_in(os.path.join(self._folder, folder), name)  # noqa: PTH118
            if path is not None and len(page := first_bytes(path, _PAGE_BYTES + 1)) == _PAGE_BYTES:
                return page
        return None

    def _add_page(self, cr3: int, address: int, page: bytes) -> None:
        """All processes share the kernel's half of the address space."""
        space = 0 if address & _KERNEL else self._space_of(cr3)
        _core.add_page(self.recording, address, page, space=space)


def _streams_folder(path: str) -> str:
    """Return the streams' folder: the path, or the sub-folder of an analysis' folder."""
    inside = os.path.join(path, "ipt")  # noqa: PTH118
    return inside if not numbered_files(path, _STREAM) and os.path.isdir(inside) else path  # noqa: PTH112


def _recognizes(source: Source) -> bool:
    if source.is_folder:
        return bool(numbered_files(_streams_folder(source.path), _STREAM))
    if number_in_name(source.path, _STREAM) is not None:
        return os.path.isfile(source.path)  # noqa: PTH113
    return _core.is_drakvuf_stream(source.head(PSB_SEARCH_BYTES))


def _read(source: Source) -> _core.Bundle:
    if not source.is_folder:
        cpu = number_in_name(source.path, _STREAM)
        return _Loader(source, source.folder).load({-1 if cpu is None else cpu: source.path})
    folder = _streams_folder(source.path)
    files = numbered_files(folder, _STREAM)
    if not files:
        raise FormatError(
            f"{source.path}: expected files ipt_stream_vcpu0, ipt_stream_vcpu1, ..., found none; give "
            "their folder"
        )
    return _Loader(source, folder).load(files)


DRAKVUF = Reader(
    "drakvuf",
    "streams of DRAKVUF's ipt plugin (ipt_stream_vcpuN)",
    _read,
    _recognizes,
    before="libxdc",
    unverified=True,
)
