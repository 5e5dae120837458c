"""One pass through the branches of a recording: times of edges, and what threads did in own code."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptkit import _core
from ptkit.analysis.coverage.reading import locate
from ptkit.analysis.suspects.facts import (
    FactKind,
    Keys,
    counted_facts,
    edge_keys,
    fact_rows,
    numbered_by_hash,
)
from ptkit.support.groups import numbered
from ptkit.table import Table

__all__ = ["BRANCH_COLUMNS", "Thread", "Walk"]

BRANCH_COLUMNS = (
    *("from_ip", "to_ip", "kind", "flags", "tsc", "tsc_error"),
    *("stream", "pid", "tid", "tid_known", "space"),
)
MOST_ORDERED = 1 << 20  # own branches of all threads, for facts on the order of threads
_MOST_COMPARED = 1 << 22  # own branches, each with another thread
MOST_PATHS = 1 << 19  # distinct paths of a recording
_LONGEST = 4  # branches of a path
_KNOWN = int(_core.RowFlag.FROM_KNOWN) | int(_core.RowFlag.TO_KNOWN)
_TIME_KNOWN = int(_core.RowFlag.TIME_KNOWN)
_NEVER = np.iinfo(np.int64).max
_RETURNS = (int(_core.BranchKind.RETURN), int(_core.BranchKind.FAR_RETURN))
_Ticks = NDArray[np.int64]


@dataclass
class Thread:
    """What a thread executed of the program's own code.

    Attributes
    ----------
    process, number : int
        Process and thread by their ids; of streams without ids -1 and the number of the stream.
    first : int
        Key of the first own branch.
    counts : list of (Keys, array)
        Own branches and how often they were executed, of parts.
    order : list of (Keys, earliest, latest)
        Own branches in their order with times, of parts.
    """

    process: int
    number: int
    first: int = 0
    counts: list[tuple[Keys, NDArray[np.int64]]] = field(default_factory=list)
    order: list[tuple[Keys, _Ticks, _Ticks]] = field(default_factory=list)


class Walk:
    """The pass.

    Parameters
    ----------
    session : _core.Session
    numbers : numpy.ndarray of int32
        Number among the files of all recordings of each file of the trace.
    own : numpy.ndarray of uint64
        Keys of the edges of the program's own code, in order.
    begin : int or None
        First time of the recording, TSC ticks.
    """

    def __init__(
        self, session: _core.Session, numbers: NDArray[np.int32], own: Keys, begin: int | None
    ) -> None:
        self._session = session
        self._numbers = numbers
        self._own = own
        self._begin = begin
        self._done = 0  # branches
        self._carried: dict[tuple[int, int, int], Keys] = {}
        self._paths: list[NDArray[Any]] = []
        self._is_full = False
        self._ordered = 0
        self.threads: dict[tuple[int, int], Thread] = {}
        self.keys: Keys = np.zeros(0, np.uint64)
        self.first: _Ticks = np.zeros(0, np.int64)
        self.last: _Ticks = np.zeros(0, np.int64)
        self.notes: list[str] = []

    def read(self, parts: Iterable[Table]) -> None:
        """Read all branches, in the order of streams."""
        for part in parts:
            self._add(part)
        for carried in self._carried.values():
            end = carried[-1:]
            ones = np.ones(len(end), np.int64)
            self._paths.append(fact_rows(FactKind.PATH, [end, np.zeros(len(end), np.uint64)], ones))

    @property
    def paths(self) -> NDArray[Any]:
        """Facts on paths; the last step of a path to the end of a thread is 0."""
        return counted_facts(self._paths)

    @property
    def has_order(self) -> bool:
        """Whether threads have the order of their branches, and not too many for comparing all pairs."""
        others = max(len(self.threads) - 1, 0)
        return self._ordered <= MOST_ORDERED and self._ordered * others <= _MOST_COMPARED

    def _add(self, part: Table) -> None:
        flags = np.asarray(part["flags"])
        rows = np.flatnonzero((flags & _KNOWN) == _KNOWN)
        columns = {name: np.asarray(part[name])[rows] for name in BRANCH_COLUMNS}
        number, row = numbered_by_hash(*(columns[name] for name in ("space", "from_ip", "to_ip", "kind")))
        space = columns["space"][row]
        ends = [
            locate(self._session, columns[f"{end}_ip"][row], space, self._numbers) for end in ("from", "to")
        ]
        keys = edge_keys(ends[0].file, ends[0].rva, ends[1].file, ends[1].rva, columns["kind"][row])
        keys[(ends[0].file < 0) | (ends[1].file < 0)] = 0
        early, late = self._times(columns, rows)
        self._done += len(flags)
        self._note_times(keys, number, early)
        at = np.searchsorted(self._own, keys)
        at[at == len(self._own)] = 0
        is_own = (self._own[at] == keys) if len(self._own) else np.zeros(len(keys), np.bool_)
        own = np.flatnonzero(is_own[number])
        if len(own):
            self._add_own(keys[number[own]], early[own], late[own], {n: c[own] for n, c in columns.items()})

    def _times(self, columns: dict[str, NDArray[Any]], rows: NDArray[np.intp]) -> tuple[_Ticks, _Ticks]:
        """Earliest and latest times of branches; of a recording without times, their numbers and no limit."""
        if self._begin is None:
            return rows + self._done, np.full(len(rows), _NEVER)
        known = (np.asarray(columns["flags"]) & _TIME_KNOWN) != 0
        early = columns["tsc"].astype(np.int64) - self._begin
        return np.where(known, early, -1), np.where(known, early + columns["tsc_error"], _NEVER)

    def _note_times(self, keys: Keys, number: NDArray[np.int64], early: _Ticks) -> None:
        """Add when edges of a part were executed first and last."""
        first = np.full(len(keys), _NEVER)
        last = np.full(len(keys), -1)
        np.minimum.at(first, number, np.where(early < 0, _NEVER, early))
        np.maximum.at(last, number, early)
        all_keys = np.concatenate([self.keys, keys])
        firsts, lasts = np.concatenate([self.first, first]), np.concatenate([self.last, last])
        self.keys, inverse = np.unique(all_keys, return_inverse=True)
        self.first, self.last = np.full(len(self.keys), _NEVER), np.full(len(self.keys), -1)
        np.minimum.at(self.first, inverse, firsts)
        np.maximum.at(self.last, inverse, lasts)

    def _add_own(self, keys: Keys, early: _Ticks, late: _Ticks, columns: dict[str, NDArray[Any]]) -> None:
        is_known = columns["tid_known"]
        process = np.where(is_known, columns["pid"], -1).astype(np.int64)
        thread = np.where(is_known, columns["tid"], columns["stream"]).astype(np.int64)
        stream = columns["stream"].astype(np.int64)
        group, first = numbered([stream, process, thread])
        is_step = ~np.isin(columns["kind"], _RETURNS)
        self._ordered += len(keys)
        if not self.has_order:
            for one in self.threads.values():
                one.order.clear()
        for chain, row in enumerate(first.tolist()):
            rows = np.flatnonzero(group == chain)
            of = int(stream[row]), int(process[row]), int(thread[row])
            one = self.threads.setdefault(of[1:], Thread(*of[1:]))
            if not one.first:
                one.first = int(keys[rows[0]])
            distinct, counts = np.unique(keys[rows], return_counts=True)
            one.counts.append((distinct, counts.astype(np.int64)))
            if self.has_order:
                one.order.append((keys[rows], early[rows], late[rows]))
            self._add_paths(of, keys[rows[is_step[rows]]])

    def _add_paths(self, chain: tuple[int, int, int], keys: Keys) -> None:
        """Add the paths that end with these branches of a thread."""
        before = self._carried.get(chain, np.zeros(0, np.uint64))
        keys = np.concatenate([before, keys])
        self._carried[chain] = keys[-(_LONGEST - 1) :].copy()
        for size in range(2, 3 if self._is_full else _LONGEST + 1):
            begin = max(0, len(before) - size + 1)
            count = len(keys) - begin - size + 1
            if count <= 0:
                continue
            columns = [keys[begin + step : begin + step + count] for step in range(size)]
            number, row = numbered_by_hash(*columns)
            counts = np.bincount(number).astype(np.int64)
            self._paths.append(fact_rows(FactKind.PATH, [column[row] for column in columns], counts))
        if sum(map(len, self._paths)) > MOST_PATHS:
            self._paths = [counted_facts(self._paths)]
            if len(self._paths[0]) > MOST_PATHS and not self._is_full:
                self._is_full = True
                self.notes.append(
                    f"more than {MOST_PATHS:,} distinct paths: later ones are of two branches each"
                )
