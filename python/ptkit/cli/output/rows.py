"""Rows as lines, with errors and gaps between them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from ptkit._core import ErrorCode
from ptkit.cli.output.positions import row_positions, side_positions
from ptkit.cli.output.terminal import line_of, print_text
from ptkit.support.text import counted
from ptkit.table import Table

_Text = TypeVar("_Text", str, bytes)
_KINDS = {"errors": "error", "gaps": "gap"}


def sides(part: Table) -> Iterator[Table]:
    """The errors and gaps of a part."""
    for side in (part.errors, part.gaps):
        if side is not None and len(side):
            yield side


class Budget:
    """Rows that may still be printed, of all streams together.

    Parameters
    ----------
    limit : int or None
        None: as many as there are.
    """

    def __init__(self, limit: int | None) -> None:
        self.left = limit

    @property
    def spent(self) -> bool:
        """Nothing more is to be printed."""
        return self.left == 0

    def cut(self, parts: Iterable[Table]) -> Iterator[Table]:
        """Pass parts with a column ``offset`` on until the budget is spent."""
        if self.spent:
            return
        for part in parts:
            if self.left is None or len(part) < self.left:
                if self.left is not None:
                    self.left -= len(part)
                yield part
                continue
            yield _first_rows(part, self.left)
            self.left = 0
            return


def _first_rows(part: Table, count: int) -> Table:
    """The first rows, with those errors and gaps that stand before the first row that is left out."""
    if count == len(part):
        return part
    cut = part[:count]
    end = row_positions(part)[count]
    cut.errors, cut.gaps = part.errors, part.gaps
    for side in sides(part):
        before = [row for row, position in enumerate(side_positions(part, side)) if position < end]
        setattr(cut, side.name, side[before])
    return cut


class Losses:
    """Counts the errors and gaps that come up while parts are read."""

    def __init__(self) -> None:
        self.errors = 0
        self.gaps = 0
        self._without_code = 0  # of both

    def count(self, part: Table) -> Table:
        """Count those of a part, and return it."""
        self.errors += len(part.errors) if part.errors is not None else 0
        self.gaps += len(part.gaps) if part.gaps is not None else 0
        self._without_code += sum(int((side["code"] == ErrorCode.NO_CODE).sum()) for side in sides(part))
        return part

    def counted(self, parts: Iterable[Table]) -> Iterator[Table]:
        """Pass parts on, counting."""
        return map(self.count, parts)

    def report(self, source: str) -> None:
        """Say on standard error what was not decoded: nothing is lost in silence."""
        if self.errors or self.gaps:
            text = f"{counted(self.errors, 'error')} and {counted(self.gaps, 'gap')}"
            hint = f"ptkit info --decode {source} shows them"
            text = f"{text}: not everything could be decoded ({hint})"
            print_text(f"ptkit: warning: {'; '.join([text, *self.missing_code(source)])}", errors=True)

    def missing_code(self, source: str) -> list[str]:
        """In one sentence or none: how much was not decoded as code is missing, and what gives the code."""
        if not self._without_code:
            return []
        verb = "is" if self._without_code == 1 else "are"
        text = f"{self._without_code:,} of these {verb} for lack of code, which --image or --code gives"
        folder = Path(source).parent
        if not Path(source).is_dir() and (folder / "page_cache.addr").is_file():
            text += f", or open {folder}, which has page_cache.addr"
        return [text]


def with_positions(part: Table, lines: Callable[[Table], list[_Text]]) -> list[tuple[int, _Text]]:
    """Errors and gaps of a part as lines, with the position of each among its rows, in order."""
    notes: list[tuple[int, _Text]] = []
    for side in sides(part):
        notes += zip(side_positions(part, side), lines(side), strict=True)
    notes.sort(key=lambda note: note[0])
    return notes


def side_texts(part: Table, *, rva: bool = False) -> list[tuple[int, str]]:
    """``[error: ...]`` and ``[gap: ...]`` of a part; `rva`: with module and RVA of addresses."""
    return with_positions(
        part, lambda side: [f"[{_KINDS[side.name]}: {text}]" for text in side._messages(rva=rva)]
    )


def side_lines(part: Table, *, rva: bool = False) -> list[tuple[int, bytes]]:
    """Errors and gaps of a part as printed bytes."""
    return [(position, line_of(text)) for position, text in side_texts(part, rva=rva)]


def rows_before(positions: NDArray[np.int64], notes: Sequence[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
    """Replace the position of each note by the number of rows that come before it.

    Parameters
    ----------
    positions : numpy.ndarray of int64
        Positions of all rows (see `row_positions`), ascending.
    notes : sequence of (int, bytes)
        Each comes after the rows up to its position, and after the notes before it.
    """
    if not notes:
        return []
    rows = np.searchsorted(positions, np.array([position for position, _ in notes], np.int64), side="right")
    rows = np.maximum.accumulate(rows)
    return [(row, text) for row, (_, text) in zip(rows.tolist(), notes, strict=True)]
