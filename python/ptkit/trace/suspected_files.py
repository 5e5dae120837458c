"""The warning where the code of a file does not lead from packet to packet: another build may have run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptkit import _core
from ptkit._core import ErrorCode
from ptkit.table import Table
from ptkit.trace.late_warnings import LateWarnings

__all__ = ["SuspectedFiles"]

# Without FUP_MISMATCH: a PSB+ says so, too, where an error before it has led to the wrong address.
_OF_CODE = [
    ErrorCode.BAD_INSN,
    ErrorCode.TNT_MISMATCH,
    ErrorCode.TIP_MISMATCH,
    ErrorCode.INFINITE_LOOP,
    ErrorCode.WALK_TOO_LONG,
]
_OF_PACKETS = [
    ErrorCode.BAD_OPCODE,
    ErrorCode.BAD_PACKET,
    ErrorCode.TRUNCATED_PACKET,
    ErrorCode.BAD_IP_COMPRESSION,
    ErrorCode.NO_SYNC,
]
_COLUMNS = {"code", "offset", "ip", "file"}

# Errors at so many addresses of a file, decided by one section of a stream: 64 KiB are some 400,000 branches.
# With another build the first functions that run contradict the packets. A breakpoint or another patch is one
# address or two; trace that was lost without a record is an error for each loss. Damaged packets contradict
# the right code, too: a section that has one does not count.
_ADDRESSES = 8
_SECTION_BITS = 16


class SuspectedFiles(LateWarnings):
    """Says once of each file that it may not have the code that ran.

    Parameters
    ----------
    paths : sequence of str
        Of the trace's files.
    source : str
        Path of the trace.
    """

    def __init__(self, paths: Sequence[str], source: str) -> None:
        super().__init__()
        self._paths = paths
        self._source = source
        self._said: set[int] = set()

    def of_query(self) -> Callable[[Table], None]:
        """Make what takes the errors of one query, in the order of its streams."""
        return _Errors(self._suspect).add

    def _suspect(self, file: int, errors: int) -> None:
        if file in self._said:
            return
        self._said.add(file)
        self._warn(_core.make_warning("FILE_LIKELY_OTHER", [str(errors), self._paths[file]], self._source))


class _Errors:
    """Counts the errors of a query by file, and their addresses by section of a stream."""

    def __init__(self, suspect: Callable[[int, int], None]) -> None:
        self._suspect = suspect
        self._counts: dict[int, int] = {}
        # Of the last section, which may go on in the next part.
        self._section: tuple[int, int] | None = None
        self._addresses: dict[int, set[int]] = {}
        self._is_damaged = False

    def add(self, errors: Table) -> None:
        """Add the next errors, and say which files are suspected."""
        if not len(errors) or not _COLUMNS.issubset(errors.columns):
            return
        code, file = np.asarray(errors["code"]), np.asarray(errors["file"])
        of_code = np.isin(code, _OF_CODE) & errors["ip_known"] & errors["file_known"]
        streams = np.asarray(errors["stream"]).astype(np.int64)
        sections = (np.asarray(errors["offset"]) >> np.uint64(_SECTION_BITS)).astype(np.int64)
        files, counts = np.unique(file[of_code], return_counts=True)
        for one, count in zip(files.tolist(), counts.tolist(), strict=True):
            self._counts[one] = self._counts.get(one, 0) + count
        kinds = np.where(of_code, 1, 0) + np.where(np.isin(code, _OF_PACKETS), 2, 0)
        kept = np.flatnonzero(kinds)
        suspected = set()
        for rows in _runs(kept, streams, sections):
            suspected |= self._add_section(
                (int(streams[rows[0]]), int(sections[rows[0]])), rows, errors, kinds
            )
        for one in sorted(suspected):
            self._suspect(one, self._counts[one])

    def _add_section(
        self, section: tuple[int, int], rows: NDArray[np.intp], errors: Table, kinds: NDArray[Any]
    ) -> set[int]:
        """Add the errors of one section; the files that are suspected by it."""
        if section != self._section:
            self._section, self._addresses, self._is_damaged = section, {}, False
        self._is_damaged |= bool((kinds[rows] == 2).any())
        of_code = rows[kinds[rows] == 1]
        for file in np.unique(errors["file"][of_code]).tolist():
            ips = errors["ip"][of_code][errors["file"][of_code] == file]
            self._addresses.setdefault(file, set()).update(np.unique(ips).tolist())
        if self._is_damaged:
            return set()
        return {file for file, ips in self._addresses.items() if len(ips) >= _ADDRESSES}


def _runs(
    rows: NDArray[np.intp], streams: NDArray[np.int64], sections: NDArray[np.int64]
) -> list[NDArray[np.intp]]:
    """Rows of one section after the other."""
    if not len(rows):
        return []
    changes = (np.diff(streams[rows]) != 0) | (np.diff(sections[rows]) != 0)
    return np.split(rows, np.flatnonzero(changes) + 1)
