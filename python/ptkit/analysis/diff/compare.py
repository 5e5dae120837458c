"""Two threads side by side: where they part, and where they go on equally."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ptkit.analysis.diff.joining import (
    Join,
    Joined,
    find_anywhere,
    find_end,
    find_join,
    find_unwound,
    last_level,
)
from ptkit.analysis.diff.sequence import Loss, Row, Sequence

__all__ = ["Parting", "Result", "compare"]

_FRAME_WINDOWS = (1 << 6, 1 << 10, 1 << 14, 1 << 18, 1 << 20)
_SURE_ROWS = 1 << 14  # beyond which a join is taken that further rows may show to be no good one
_ANY_WINDOWS = (1 << 12, 1 << 16, 1 << 18)
_LOST_ROWS, _PARTED_ROWS = 24, 64  # rows of any frames that must be equal
_NEAR_LOSS = 200  # instructions after which rows that are equal are not so by chance


@dataclass(frozen=True)
class Parting:
    """Where two threads part.

    Attributes
    ----------
    before : tuple of Row or None
        The last branch of each run before it.
    after : tuple of Row or None
        The first branches that differ; None: the run ends.
    own : tuple of Row or None
        The last branch of each run in the program's own files.
    skipped : tuple of int
        Branches of each run until both go on equally.
    joined : Joined
    depth : int
        Frames that were left.
    """

    before: tuple[Row | None, Row | None]
    after: tuple[Row | None, Row | None]
    own: tuple[Row | None, Row | None]
    skipped: tuple[int, int]
    joined: Joined
    depth: int


@dataclass
class Result:
    """What comparing two threads found.

    Attributes
    ----------
    compared : int
        Branches that are equal in both.
    partings : list of Parting
    more : int
        Partings beyond the limit.
    losses : tuple of list of Loss
        Of each run.
    unjudged : list of int
        Branches of each run that were not compared: after losses, and after a place of which no join is
        known.
    """

    compared: int = 0
    partings: list[Parting] = field(default_factory=list)
    more: int = 0
    losses: tuple[list[Loss], list[Loss]] = field(default_factory=lambda: ([], []))
    unjudged: list[int] = field(default_factory=lambda: [0, 0])


def compare(a: Sequence, b: Sequence, *, limit: int) -> Result:
    """Compare two threads from their begin to their end."""
    result = Result()
    while True:
        count = min(a.fill(1), b.fill(1))
        equal = _equal(a, b, count)
        result.compared += equal
        a.advance(equal)
        b.advance(equal)
        if equal == count and count:
            continue
        is_lost = _take_losses(a, b, result)
        if not a.fill(1) and not b.fill(1):
            return result
        if is_lost:
            _pass_loss(a, b, result)
            continue
        parting = _parting(a, b, result)
        if len(result.partings) < limit:
            result.partings.append(parting)
        else:
            result.more += 1


def _equal(a: Sequence, b: Sequence, count: int) -> int:
    unequal = a.ahead("key", count) != b.ahead("key", count)
    return int(np.argmax(unequal)) if count and unequal.any() else count


def _take_losses(a: Sequence, b: Sequence, result: Result) -> bool:
    """Note losses before the cursors; return whether one is so near that it may be why both part."""
    is_near = False
    for number, one in enumerate((a, b)):
        losses = one.passed_losses()
        result.losses[number].extend(losses)
        row = one.row() or one.before
        for loss in losses:
            distance = 0 if row is None or row.stream != loss.stream else row.instruction - loss.instruction
            is_near |= distance < _NEAR_LOSS
    return is_near


def _pass_loss(a: Sequence, b: Sequence, result: Result) -> None:
    """Go on where both are equal again; what was passed is not judged."""
    join = _anywhere(a, b, _LOST_ROWS)
    skipped = (a.rest(), b.rest()) if join is None else (a.skip(join.a), b.skip(join.b))
    for number, count in enumerate(skipped):
        result.unjudged[number] += count
    for number, one in enumerate((a, b)):
        result.losses[number].extend(one.passed_losses())


def _parting(a: Sequence, b: Sequence, result: Result) -> Parting:
    before, after = (a.before, b.before), (a.row(), b.row())
    own = a.own_before, b.own_before
    begin = a.position, b.position
    join = _join(a, b)
    a.skip(join.a)
    b.skip(join.b)
    if join.how == Joined.NOWHERE:
        result.unjudged[0] += a.rest()
        result.unjudged[1] += b.rest()
    for number, one in enumerate((a, b)):
        result.losses[number].extend(one.passed_losses())
    skipped = a.position - begin[0], b.position - begin[1]
    return Parting(before, after, own, skipped, join.how, join.depth)


def _join(a: Sequence, b: Sequence) -> Join:
    """Where both go on equally; the cursors may have moved."""
    for size in _FRAME_WINDOWS:
        windows = a.window(size), b.window(size)
        ended = [window.has_ended for window in windows]
        is_last = size == _FRAME_WINDOWS[-1] or all(ended)
        join = find_join(*windows, is_last=is_last or size >= _SURE_ROWS)
        if join is None and (is_last or size >= _SURE_ROWS):
            join = find_unwound(*windows)
        if join is not None:
            return join
        if is_last or not all(len(window.key) for window in windows):
            break
    if any(ended):
        join = find_end(*windows) if all(ended) else None
        return _ends(a, b) if join is None else join
    join = _anywhere(a, b, _PARTED_ROWS)
    if join is not None:
        return join
    level = min(last_level(window) for window in windows)
    if a.skip_frames(level) and b.skip_frames(level):
        assert a.before is not None
        assert b.before is not None
        if a.before.to_key == b.before.to_key:
            return Join(0, 0, Joined.CALLER, level + 1)
        return Join(0, 0, Joined.NOWHERE, 0)
    return _ends(a, b)


def _ends(a: Sequence, b: Sequence) -> Join:
    """Both end without another common branch."""
    a.rest()
    b.rest()
    return Join(0, 0, Joined.END, 0)


def _anywhere(a: Sequence, b: Sequence, rows: int) -> Join | None:
    for size in _ANY_WINDOWS:
        windows = a.window(size), b.window(size)
        join = find_anywhere(*windows, rows)
        if join is not None or all(window.has_ended for window in windows):
            return join
    return None
