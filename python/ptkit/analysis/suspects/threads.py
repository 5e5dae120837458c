"""Facts on threads: what each one executed, and which of two came first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptkit.analysis.coverage.texts import Texts
from ptkit.analysis.suspects.events import Thread
from ptkit.analysis.suspects.facts import FactKind, Keys, counted_facts, fact_rows, numbered_by_hash

__all__ = ["Role", "order_facts", "roles_of", "thread_facts"]

_MOST_FIRSTS = 64  # of a thread, for facts on the first of two threads
_MOST_THREADS = 8  # for these facts
_WIDEST = 3  # branches that a thread goes on by while another one comes between
_Ticks = NDArray[np.int64]


@dataclass(frozen=True)
class Role:
    """A thread of a recording, by what it is there for.

    Attributes
    ----------
    thread : Thread
    function : int
        Text of the function that it began in, with the number of the process where there are several.
    name : int
        Text of the same with its number among the threads of that function, by the order of their ids.
    """

    thread: Thread
    function: int
    name: int


def roles_of(threads: Sequence[Thread], functions: Mapping[int, str], texts: Texts) -> list[Role]:
    """Roles of threads; `functions`: the names of functions by keys of edges from them."""
    ordered = sorted(threads, key=lambda one: (one.process, one.number))
    processes = {
        process: number for number, process in enumerate(dict.fromkeys(t.process for t in ordered), 1)
    }
    begins = []
    for one in ordered:
        name = functions.get(one.first) or "[no symbol]"
        begins.append(name if len(processes) == 1 else f"process {processes[one.process]}: {name}")
    seen: dict[str, int] = {}
    found = []
    for one, begin in zip(ordered, begins, strict=True):
        seen[begin] = seen.get(begin, 0) + 1
        name = begin if begins.count(begin) == 1 else f"{begin} {seen[begin]}"
        function, number = texts.add([begin, name]).tolist()
        found.append(Role(one, function, number))
    return found


def thread_facts(roles: Sequence[Role], choices: Keys) -> NDArray[Any]:
    """Outcomes of branches by the function that threads began in; `choices`: keys of these edges."""
    parts = []
    for role in roles:
        for keys, counts in role.thread.counts:
            chosen = np.isin(keys, choices)
            parts.append(fact_rows(FactKind.BRANCH, [keys[chosen]], counts[chosen], thread=role.function))
    return counted_facts(parts)


def order_facts(roles: Sequence[Role]) -> NDArray[Any]:
    """Which branches of two threads came first, where their times say it for certain."""
    tracks = {role.name: _track(role.thread) for role in roles if role.thread.order}
    parts = [*_interleavings(list(tracks.values()))]
    some = list(tracks.items())[:_MOST_THREADS]
    for (name, track), (other, other_track) in combinations(some, 2):
        parts += _first_of_two(name, track, other, other_track)
    return counted_facts(parts)


@dataclass(frozen=True)
class _Track:
    """Own branches of a thread in their order; the latest times never fall."""

    keys: Keys
    early: _Ticks
    late: _Ticks


def _track(thread: Thread) -> _Track:
    keys, early, late = (np.concatenate(column) for column in zip(*thread.order, strict=True))
    order = np.argsort(early, kind="stable")  # a thread may have parts in several streams
    early, late = early[order], np.maximum.accumulate(late[order])
    return _Track(keys[order], early, late)


def _interleavings(tracks: Sequence[_Track]) -> Iterator[NDArray[Any]]:
    """Branches of a thread, each with two of another thread that it certainly comes between.

    These follow each other, or one or two others are between them. Before the first and after the last branch
    of the other thread, the step is 0.
    """
    for track in tracks:
        bounded = np.zeros(len(track.keys) + 2, np.uint64)
        bounded[1:-1] = track.keys
        for other in tracks:
            if other is track:
                continue
            before = np.searchsorted(track.late, other.early, side="left")
            after = np.searchsorted(track.early, other.late, side="right")
            for more, further in product(range(_WIDEST), repeat=2):
                first, last = before - more, after + 1 + further  # in `bounded`
                rows = np.flatnonzero((first >= 0) & (last < len(bounded)) & (last - first <= _WIDEST))
                columns = [bounded[first[rows]], other.keys[rows], bounded[last[rows]]]
                number, row = numbered_by_hash(*columns)
                counts = np.bincount(number, minlength=len(row)).astype(np.int64)
                yield fact_rows(FactKind.INTERLEAVING, [column[row] for column in columns], counts)


def _first_of_two(name: int, track: _Track, other: int, others: _Track) -> Iterator[NDArray[Any]]:
    """Pairs of branches of two threads of which the first executions have a certain order."""
    some = (name, *_firsts(track)), (other, *_firsts(others))
    for first, second in (some, some[::-1]):
        (thread, keys, _, late), (later, later_keys, early, _) = first, second
        rows, columns = np.nonzero(late[:, None] < early)
        steps = [keys[rows], later_keys[columns]]
        ones = np.ones(len(rows), np.int64)
        yield fact_rows(FactKind.ORDER, steps, ones, thread=thread, other=later)


def _firsts(track: _Track) -> tuple[Keys, _Ticks, _Ticks]:
    """First executions of the branches that were executed least often, in order of time."""
    _, first, counts = np.unique(track.keys, return_index=True, return_counts=True)
    chosen = np.sort(first[np.lexsort((first, counts))[:_MOST_FIRSTS]])
    return track.keys[chosen], track.early[chosen], track.late[chosen]
