"""Rows of branches with the repetitions of loops folded, without loss."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptkit import _core
from ptkit.analysis.loops import CodeLoops
from ptkit.decode import Plan, Window
from ptkit.decode.calls import call_query, too_large

__all__ = ["BEGIN", "END", "GAP", "OWNER", "ROW", "Folded", "fold"]

ROW, BEGIN, END, GAP, OWNER = range(5)  # tables::branches::FoldOp
_TOKENS = 1 << 15  # that a part has, about
_NAMES = ("op", "first", "second", "kind", "flags")


@dataclass
class Folded:
    """A part of a stream's tokens.

    Attributes
    ----------
    stream : int
    columns : dict of str to numpy.ndarray, each of shape (tokens,)
        ``op``; of a ROW ``first`` and ``second`` are from_ip and to_ip, of BEGIN how often the tokens up to
        its END are repeated and the head of the loop, of OWNER the thread and the space of what follows;
        ``kind`` and ``flags`` of a ROW.
    space : int
        Of the rows before the first OWNER.
    """

    stream: int
    columns: dict[str, NDArray[Any]]
    space: int

    def __len__(self) -> int:
        return len(self.columns["op"])

    def __getitem__(self, rows: slice) -> Folded:
        return Folded(self.stream, {name: cells[rows] for name, cells in self.columns.items()}, self.space)

    def tokens(self) -> Iterator[tuple[int, int, int, int, int]]:
        """Tokens, one by one."""
        return zip(*(self.columns[name].tolist() for name in _NAMES), strict=True)

    def spaces(self) -> NDArray[np.int64]:
        """Address space of each token."""
        owners = self.columns["op"] == OWNER
        own = np.where(owners, self.columns["second"], 0).astype(np.int64)
        last = np.maximum.accumulate(np.where(owners, np.arange(len(self)), -1))
        spaces: NDArray[np.int64] = np.where(last >= 0, own[last], self.space)
        return spaces

    def addresses(self) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
        """Addresses of rows and of heads, each once, with a space that has it."""
        op, spaces = self.columns["op"], self.spaces()
        rows, heads = op == ROW, op == BEGIN
        ips = np.concatenate([self.columns["first"][rows], self.columns["second"][rows | heads]])
        own = np.concatenate([spaces[rows], spaces[rows | heads]])
        ips, first = np.unique(ips, return_index=True)
        return ips, own[first]


def fold(
    plan: Plan, window: Window | None, loops: CodeLoops, *, most_items: int = 1 << 20
) -> Iterator[Folded]:
    """Fold the rows of each stream.

    Parameters
    ----------
    plan : Plan
        Of calls.
    window : Window or None
    loops : CodeLoops
    most_items : int
        What is kept of the bodies of loops before it is forgotten; see loop_folder.h.

    Yields
    ------
    Folded
        A repetition may begin in one part, and end in a later one of its stream.

    Raises
    ------
    ConfigError, OutOfMemoryError
        As for calls.
    """
    query = call_query(plan, window=window)
    reader = _core.FoldReader(query, loops.map, most_items=most_items)
    before, space = -1, 0
    while True:
        try:
            found = reader.read(_TOKENS)
        except MemoryError:
            raise too_large("the folded rows", query, "select fewer streams or threads") from None
        plan.after()
        if found is None:
            return
        (stream, columns), *_ = found
        part = Folded(stream, columns, space if stream == before else 0)
        if len(part):
            yield part
            before, space = stream, int(part.spaces()[-1])
