"""Two engines' rows of one table side by side: the first row that differs, in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Arrays = dict[str, NDArray[np.generic]]
Part = tuple[int, Arrays, dict[str, NDArray[np.generic]]]

PART_ROWS = 1 << 17
HISTORY = 16  # rows kept before the cursor, to be shown beside a difference
WINDOW = 64  # rows that must agree where the two are put beside each other again
SEARCH_ROWS = 1 << 22  # how far rows that agree are looked for


class Reader(Protocol):
    """The part of the core's reader of a table that is needed."""

    def read(self, rows: int | None, stop_on_error: bool = False) -> Part:
        """Give the next rows: fewer than asked for at the end."""

    def errors(self) -> Part | None:
        """Give the error rows that came up since the last call."""


class Rows:
    """One engine's rows before and after a cursor.

    Parameters
    ----------
    reader : Reader
    keys : sequence of str
        Columns that are compared.
    prepare : callable, optional
        Takes the columns of a part and returns those of the rows that take part. A column ``known_KEY``
        (bool) is true where the reference knows that key at all.
    watch : callable, optional
        Called after each part that was read.
    """

    def __init__(
        self,
        reader: Reader,
        keys: Sequence[str],
        prepare: Callable[[Arrays], Arrays] | None = None,
        watch: Callable[[], None] | None = None,
    ) -> None:
        self.keys = tuple(keys)
        self.position = 0  # rows before the cursor
        self.errors: list[dict[str, int]] = []
        self._reader = reader
        self._prepare = prepare
        self._watch = watch
        self._arrays: Arrays = {}
        self._cursor = 0  # its row in the arrays
        self._rows = 0
        self.ended = False

    def fill(self, count: int) -> int:
        """Have at least this many rows in front of the cursor, if there are; return how many there are."""
        parts = []
        available = self._rows - self._cursor
        while available < count and not self.ended:
            rows, arrays, _ = self._reader.read(PART_ROWS)
            self.ended = rows < PART_ROWS
            self._take_errors()
            if self._watch is not None:
                self._watch()
            if self._prepare is not None:
                arrays = self._prepare(arrays)
                rows = len(arrays["offset"])
            parts.append(arrays)
            available += rows
        if parts:
            self._append(parts, available)
        return available

    def _take_errors(self) -> None:
        found = self._reader.errors()
        if found is None:
            return
        rows, arrays, _ = found
        self.errors += [{name: int(array[i]) for name, array in arrays.items()} for i in range(rows)]

    def _append(self, parts: list[Arrays], available: int) -> None:
        start = max(self._cursor - HISTORY, 0)
        kept = [{name: array[start:] for name, array in self._arrays.items()}] if self._arrays else []
        names = parts[0].keys()
        self._arrays = {name: np.concatenate([part[name] for part in [*kept, *parts]]) for name in names}
        self._cursor -= start
        self._rows = self._cursor + available

    def ahead(self, name: str, count: int) -> NDArray[np.generic]:
        """Values of the next rows."""
        if not self._arrays:
            return np.zeros(0, dtype=np.uint64)
        return self._arrays[name][self._cursor : self._cursor + count]

    def known(self, key: str, count: int) -> NDArray[np.bool_]:
        """Which of the next rows know a key."""
        found = self._arrays.get(f"known_{key}")
        if found is None:
            return np.ones(count, dtype=np.bool_)
        return found[self._cursor : self._cursor + count].astype(np.bool_)

    def rows_until(self, offset: int, count: int) -> int:
        """How many of the next rows come from packets up to this stream offset."""
        return int(np.searchsorted(self.ahead("offset", count), np.uint64(offset), side="right"))

    def advance(self, count: int) -> None:
        """Move the cursor."""
        self._cursor += count
        self.position += count

    def row(self) -> dict[str, int] | None:
        """Return the row at the cursor."""
        return self._row(self._cursor) if self.fill(1) else None

    def history(self) -> list[dict[str, int]]:
        """Return the last rows before the cursor, oldest first."""
        return [self._row(i) for i in range(max(self._cursor - HISTORY, 0), self._cursor)]

    def _row(self, index: int) -> dict[str, int]:
        return {name: int(array[index]) for name, array in self._arrays.items()}

    def rest(self) -> int:
        """Read to the end; return how many rows that were."""
        count = 0
        while available := self.fill(1):
            self.advance(available)
            count += available
        return count


@dataclass
class Comparison:
    """Rows that were equal, rows that the reference could not judge, and whether the next ones differ."""

    matched: int = 0
    unjudged: int = 0
    differs: bool = False
    unexplained: dict[str, int] | None = None  # the error row of the reference at which ours has none
    reasons: dict[str, int] = field(default_factory=dict)


def _first_difference(ours: Rows, theirs: Rows, count: int) -> int:
    """Index of the first of the next rows that differs; `count` if none does."""
    unequal = np.zeros(count, dtype=np.bool_)
    for key in ours.keys:
        differ = ours.ahead(key, count) != theirs.ahead(key, count)
        unequal |= differ & theirs.known(key, count)
    return int(np.argmax(unequal)) if unequal.any() else count


def _find(ours: Rows, theirs: Rows, window: int, least: int) -> int | None:
    """How many rows of ours precede the next rows of theirs; matches start at offset `least` or later."""
    wanted = {key: (theirs.ahead(key, window), theirs.known(key, window)) for key in ours.keys}
    available = ours.fill(window)
    begin = 0
    while begin + window <= available:
        candidates = ours.ahead("offset", available)[begin : available - window + 1] >= np.uint64(least)
        for key, (values, known) in wanted.items():
            if known[0]:
                candidates &= ours.ahead(key, available)[begin : available - window + 1] == values[0]
        for start in (np.flatnonzero(candidates) + begin).tolist():
            if all(
                ((ours.ahead(key, available)[start : start + window] == values) | ~known).all()
                for key, (values, known) in wanted.items()
            ):
                return int(start)
        begin = available - window + 1
        if available >= SEARCH_ROWS:
            return None
        available = ours.fill(available + PART_ROWS)
    return None


Explain = Callable[[Mapping[str, int]], str | None]


@dataclass(frozen=True)
class Allowed:
    """Where ours may have more rows than the reference.

    Attributes
    ----------
    explain : callable
        Takes an error row of the reference and returns why ours may have more there, or None.
    resumed_at : callable
        Takes a stream offset and returns that of the PSB before it, at which the reference resumed.
    tail : tuple of (int, str) or None
        Stream offset from which ours may have more rows at the end, and why.
    cut : callable
        Takes our last error row and returns why the reference may have more rows after it, or None.
    """

    explain: Explain
    resumed_at: Callable[[int], int] = lambda _: 0
    tail: tuple[int, str] | None = None
    cut: Callable[[Mapping[str, int]], str | None] = lambda _: None


def compare(ours: Rows, theirs: Rows, allowed: Allowed) -> Comparison:
    """Compare to the first difference or to the end.

    Where the reference met an error, it lost rows that we may have: both are put beside each other again
    where its rows go on, if `allowed` says why that may be.

    Parameters
    ----------
    ours, theirs : Rows
        Left at the first rows that differ.
    allowed : Allowed

    Returns
    -------
    Comparison
    """
    result = Comparison()
    handled = 0
    while True:
        segment = theirs.fill(PART_ROWS)
        at_error = False
        if handled < len(theirs.errors):
            before = theirs.rows_until(theirs.errors[handled]["offset"], segment)
            at_error = before < segment or theirs.ended
            segment = before
        count = min(ours.fill(segment), segment)
        equal = _first_difference(ours, theirs, count)
        result.matched += equal
        ours.advance(equal)
        theirs.advance(equal)
        if equal < segment:
            reason = allowed.cut(ours.errors[-1]) if ours.errors and not ours.fill(1) else None
            result.differs = reason is None
            if reason is not None:
                result.reasons[reason] = 1
                return result
        elif at_error:
            handled = _pass_errors(ours, theirs, allowed, result, handled)
        elif segment == 0:
            _end(ours, result, allowed.tail)
            return result
        if result.differs:
            return result


def _end(ours: Rows, result: Comparison, tail: tuple[int, str] | None) -> None:
    """The reference has no more rows: neither may we, but for the tail."""
    if not ours.fill(1):
        return
    if tail is None or int(ours.ahead("offset", 1)[0]) < tail[0]:
        result.differs = True
        return
    result.unjudged += ours.rest()
    result.reasons[tail[1]] = 1


def _pass_errors(ours: Rows, theirs: Rows, allowed: Allowed, result: Comparison, handled: int) -> int:
    """Explain the reference's errors at the cursor and find where its rows go on in ours."""
    available = theirs.fill(WINDOW)
    first = int(theirs.ahead("offset", 1)[0]) if available else None
    while handled < len(theirs.errors) and (first is None or theirs.errors[handled]["offset"] < first):
        reason = allowed.explain(theirs.errors[handled])
        if reason is None:
            result.differs = True
            result.unexplained = theirs.errors[handled]
            return handled
        result.reasons[reason] = result.reasons.get(reason, 0) + 1
        handled += 1
    if first is None:
        result.unjudged += ours.rest()
        return handled
    window = min(available, WINDOW)
    if handled < len(theirs.errors):
        window = theirs.rows_until(theirs.errors[handled]["offset"], window)
    skipped = _find(ours, theirs, window, allowed.resumed_at(first))
    if skipped is None:  # it had read beyond the next PSB
        skipped = _find(ours, theirs, window, 0)
    if skipped is None:
        result.differs = True
    else:
        result.unjudged += skipped
        ours.advance(skipped)
    return handled
