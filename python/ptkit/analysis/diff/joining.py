"""Where two sequences of branches go on equally after they parted."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "FRAME_ROWS",
    "Join",
    "Joined",
    "Window",
    "find_anywhere",
    "find_end",
    "find_join",
    "find_unwound",
    "last_level",
]

FRAME_ROWS = 4  # rows of a frame that must be equal where two runs join
_ROUNDS = 8  # of a loop that are tried
_COMPARED = 256  # rows of all frames
_END_ROWS = 16  # rows at the ends of two runs
_STEP = np.uint64(0x9E3779B97F4A7C15)
_RETURNED, _ENDED = (
    np.uint64(0x5851F42D4C957F2D),
    np.uint64(0x14057B7EF767814F),
)  # after the last row of a frame


class Joined(IntEnum):
    """How two runs joined again."""

    SAME_FRAME = 0
    CALLER = 1
    ANYWHERE = 2
    END = 3
    NOWHERE = 4


@dataclass(frozen=True)
class Window:
    """Rows of one run from where it parted.

    Attributes
    ----------
    key : numpy.ndarray of uint64
        What a row is compared by.
    target : numpy.ndarray of uint64
        Key of where the row leads to.
    delta : numpy.ndarray of int8
        Frames that the row opens, less those that it closes.
    enter : numpy.ndarray of bool
        A signal handler began before the row.
    from_ip : numpy.ndarray of uint64
    back_to : numpy.ndarray of uint64
        Where a jump backward leads to; all other rows: the last address.
    has_ended : bool
        There are no more rows.
    """

    key: NDArray[np.uint64]
    target: NDArray[np.uint64]
    delta: NDArray[np.int8]
    enter: NDArray[np.bool_]
    from_ip: NDArray[np.uint64]
    back_to: NDArray[np.uint64]
    has_ended: bool


class Join(NamedTuple):
    """Rows of each run before the place where both go on equally.

    Attributes
    ----------
    a, b : int
    how : Joined
    depth : int
        Frames that were left.
    """

    a: int
    b: int
    how: Joined
    depth: int


class _Level(NamedTuple):
    """Rows of the frame that both parted in (0), of its caller (1), ...: numbers, and where they are cut."""

    rows: NDArray[np.intp]
    limits: NDArray[np.intp]  # of the rows of each level

    @property
    def last(self) -> int:
        return len(self.limits) - 2

    def of(self, level: int) -> NDArray[np.intp]:
        return self.rows[self.limits[level] : self.limits[level + 1]]


def _depths(window: Window) -> NDArray[np.int64]:
    """Frames above the first one before each row, and after the last one."""
    opened = np.cumsum(window.delta, dtype=np.int64)
    before = np.empty(len(opened) + 1, np.int64)
    before[0], before[1:] = 0, opened
    if window.enter.any():
        entered = np.cumsum(window.enter)
        before[:-1] += entered
        before[-1] += entered[-1]
    return before


def _levels(window: Window) -> _Level:
    """Rows of the outermost frame that was reached until then."""
    before = _depths(window)
    least = np.minimum(np.minimum.accumulate(before), 0)
    rows = np.flatnonzero(before[:-1] == least[:-1])
    last = -int(least[-1])
    limits = np.searchsorted(-least[:-1][rows], np.arange(last + 1))
    return _Level(rows, np.append(limits, len(rows)))


def _grams(keys: NDArray[np.uint64], count: int) -> NDArray[np.uint64]:
    """Hashes of each `count` keys that follow each other."""
    size = len(keys) - count + 1
    if size <= 0:
        return keys[:0]
    found: NDArray[np.uint64] = keys[:size].copy()
    for at in range(1, count):
        found *= _STEP
        found += keys[at : at + size]
    return found


def _padded(window: Window, rows: NDArray[np.intp], is_whole: bool, ended: bool) -> NDArray[np.uint64]:
    """Keys of the rows of a frame; those of a whole frame end with marks."""
    keys = window.key[rows]
    if not is_whole:
        return keys
    return np.concatenate([keys, np.full(FRAME_ROWS, _ENDED if ended else _RETURNED)])


def _spans(window: Window, rows: NDArray[np.intp]) -> NDArray[np.uint64]:
    """Bytes of the loops that rows of a frame go around: jumps back to where the first row is, or before it.

    Other jumps backward leave code that the compiler moved out of the way.
    """
    if not len(rows):
        return np.zeros(0, np.uint64)
    from_ip, to = window.from_ip[rows], window.back_to[rows]
    return np.where(to <= from_ip[0], from_ip - to, 0).astype(np.uint64)


def _skipped(spans: NDArray[np.uint64], size: int) -> NDArray[np.uint64]:
    """The longest loop that was gone around before each row of a frame."""
    found = np.zeros(size, np.uint64)
    if len(spans):
        longest = np.maximum.accumulate(spans)
        count = min(len(spans), size - 1)
        found[1 : count + 1] = longest[:count]
        found[count + 1 :] = longest[-1]
    return found


def _best(
    some: NDArray[np.uint64],
    others: NDArray[np.uint64],
    skipped: tuple[NDArray[np.uint64], NDArray[np.uint64]],
) -> tuple[int, int, int] | None:
    """The pair of equal hashes for which no loop, or the innermost one, is gone around; then the nearest."""
    if not len(some) or not len(others):
        return None
    mine, first = np.unique(some, return_index=True)
    theirs, second = np.unique(others, return_index=True)
    _, at, to = np.intersect1d(mine, theirs, assume_unique=True, return_indices=True)
    if not len(at):
        return None
    a, b = first[at], second[to]
    around = np.maximum(skipped[0][a], skipped[1][b])
    chosen = np.lexsort((np.abs(a - b), a + b, around))[0]
    return int(a[chosen]), int(b[chosen]), int(around[chosen])


def _longest(
    a: Window,
    b: Window,
    rows: tuple[NDArray[np.intp], NDArray[np.intp]],
    grams: tuple[NDArray[np.uint64], NDArray[np.uint64]],
    found: tuple[int, int],
) -> tuple[int, int]:
    """Of places with the hash of a pair that was found, those from which on most rows are equal.

    Rounds of a loop look the same in its frame, and differ in what they call: one of both runs may have to
    go on by a round. Of equally good pairs, the one that was found.
    """
    gram = grams[0][found[0]]
    some, others = (np.flatnonzero(of == gram)[:_ROUNDS].tolist() for of in grams)
    pairs = [found, *((found[0], one) for one in others), *((one, found[1]) for one in some)]
    pairs = [(one, other) for one, other in pairs if one < len(rows[0]) and other < len(rows[1])]

    def equal(pair: tuple[int, int]) -> int:
        first, second = int(rows[0][pair[0]]), int(rows[1][pair[1]])
        count = min(len(a.key) - first, len(b.key) - second, _COMPARED)
        unequal = a.key[first : first + count] != b.key[second : second + count]
        return int(np.argmax(unequal)) if unequal.any() else count

    lengths = [equal(pair) for pair in pairs]
    best = int(np.argmax(lengths))
    # At the end of a window lengths say little.
    return pairs[best] if lengths[best] > lengths[0] + FRAME_ROWS else found


def find_join(a: Window, b: Window, *, is_last: bool) -> Join | None:
    """Where both go on equally, in the frame that they parted in or in one that called it.

    Parameters
    ----------
    a, b : Window
    is_last : bool
        What may not be the best is taken, too.

    Returns
    -------
    Join or None
        None: it cannot be said yet, or is not within these rows.
    """
    some, others = _levels(a), _levels(b)
    for level in range(min(some.last, others.last) + 1):
        mine, theirs = some.of(level), others.of(level)
        returned = some.last > level, others.last > level
        is_whole = returned[0] or a.has_ended, returned[1] or b.has_ended
        both = all(is_whole)
        keys = (
            _padded(a, mine, both, not returned[0]),
            _padded(b, theirs, both, not returned[1]),
        )
        grams = _grams(keys[0], FRAME_ROWS), _grams(keys[1], FRAME_ROWS)
        spans = _spans(a, mine), _spans(b, theirs)
        skipped = _skipped(spans[0], len(keys[0])), _skipped(spans[1], len(keys[1]))
        # The marks alone are equal, too: both left the frame.
        most = len(mine), len(theirs)
        found = _best(grams[0][: most[0]], grams[1][: most[1]], skipped)
        if found is not None:
            at, to = _longest(a, b, (mine, theirs), grams, found[:2])
            around = max(int(skipped[0][at]), int(skipped[1][to]))
            later = [
                int(ends.max(initial=0)) for ends, whole in zip(spans, is_whole, strict=True) if not whole
            ]
            if both or is_last or around <= min(later, default=0):
                how = Joined.SAME_FRAME if level == 0 else Joined.CALLER
                return Join(int(mine[at]), int(theirs[to]), how, level)
        if not both:
            return None
        if not all(returned):
            if not any(returned):
                return Join(len(a.key), len(b.key), Joined.END, level)
            return None
        last = int(mine[-1]) if len(mine) else -1, int(theirs[-1]) if len(theirs) else -1
        if min(last) >= 0 and a.target[last[0]] == b.target[last[1]]:
            return Join(last[0] + 1, last[1] + 1, Joined.CALLER, level + 1)
    return None


def find_unwound(a: Window, b: Window) -> Join | None:
    """Where rows of a frame below, of one run, are rows of any one frame of the other.

    Exceptions, `longjmp` and the like leave frames without a return, so that the frames of the run that does
    so cannot be counted.
    """
    found = [
        Join(join.a, join.b, Joined.CALLER, join.depth) for join in [_in_any_frame(a, b)] if join is not None
    ]
    found += [
        Join(join.b, join.a, Joined.CALLER, join.depth) for join in [_in_any_frame(b, a)] if join is not None
    ]
    return min(found, key=lambda join: join.a + join.b, default=None)


def _in_any_frame(a: Window, b: Window) -> Join | None:
    levels = _levels(a)
    depths = _depths(b)[:-1]
    order = np.argsort(depths, kind="stable")
    grams = _grams(b.key[order], FRAME_ROWS)
    # Rows of one frame have one depth.
    own = depths[order]
    grams_begin = np.flatnonzero(own[: len(grams)] == own[FRAME_ROWS - 1 :][: len(grams)])
    mine = _grams(a.key[levels.rows], FRAME_ROWS)
    limits = np.repeat(np.arange(levels.last + 1), np.diff(levels.limits))
    whole = np.flatnonzero(limits[: len(mine)] == limits[FRAME_ROWS - 1 :][: len(mine)])
    if not len(grams_begin) or not len(whole):
        return None
    distinct, first = np.unique(mine[whole], return_index=True)
    rows = order[grams_begin]
    by_location = np.argsort(rows, kind="stable")
    theirs, second = np.unique(grams[grams_begin][by_location], return_index=True)
    _, at, to = np.intersect1d(distinct, theirs, assume_unique=True, return_indices=True)
    if not len(at):
        return None
    some, others = levels.rows[whole[first[at]]], rows[by_location][second[to]]
    chosen = int(np.argmin(some + others))
    return Join(int(some[chosen]), int(others[chosen]), Joined.CALLER, int(limits[whole[first[at[chosen]]]]))


def find_end(a: Window, b: Window, rows: int = _END_ROWS) -> Join | None:
    """The begin of the rows that both have at their ends, if they are so many at least."""
    size = min(len(a.key), len(b.key))
    differ = np.flatnonzero(a.key[len(a.key) - size :][::-1] != b.key[len(b.key) - size :][::-1])
    same = int(differ[0]) if len(differ) else size
    return Join(len(a.key) - same, len(b.key) - same, Joined.ANYWHERE, 0) if same >= rows else None


def last_level(window: Window) -> int:
    """How many frames the rows leave."""
    return _levels(window).last


def find_anywhere(a: Window, b: Window, rows: int) -> Join | None:
    """The nearest place from which on so many rows of any frames are equal."""
    some, others = _grams(a.key, rows), _grams(b.key, rows)
    nothing = np.zeros(len(a.key) + 1, np.uint64), np.zeros(len(b.key) + 1, np.uint64)
    found = _best(some, others, nothing) if len(a.key) >= rows and len(b.key) >= rows else None
    return None if found is None else Join(found[0], found[1], Joined.ANYWHERE, 0)
