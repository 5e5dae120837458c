"""Text columns: few distinct names, and a code per row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Labels"]


@dataclass(frozen=True)
class Labels:
    """The names of rows, dictionary-encoded.

    Attributes
    ----------
    codes : numpy.ndarray of int32, shape (rows,)
        Index in `names`; -1: the row has no name.
    names : sequence of str
        Distinct names.
    """

    codes: NDArray[np.int32]
    names: Sequence[str]

    def texts(self) -> NDArray[Any]:
        """Return an object array of one str or None per row."""
        return np.array([*self.names, None], dtype=object)[self.codes]

    def known(self) -> NDArray[np.bool_]:
        """Return which rows have a name."""
        return np.asarray(self.codes >= 0)

    def among(self, wanted: Iterable[str | None]) -> NDArray[np.bool_]:
        """Return which rows have one of some names; None stands for no name."""
        chosen = set(wanted)
        return np.array([*(name in chosen for name in self.names), None in chosen], np.bool_)[self.codes]

    def filled(self, others: Labels) -> Labels:
        """Return the same names, and those of `others` for rows that have none."""
        if not others.names or not (self.codes < 0).any():
            return self
        codes = {name: code for code, name in enumerate(self.names)}
        for name in others.names:
            codes.setdefault(name, len(codes))
        of_others = np.array([*(codes[name] for name in others.names), -1], np.int32)
        return Labels(np.where(self.codes < 0, of_others[others.codes], self.codes), list(codes))

    def renamed(self, form: Callable[[list[str]], list[str]]) -> Labels:
        """Return other names of the same rows: `form` makes them of all names, and some may be equal then."""
        names = form(list(self.names))
        codes = {name: code for code, name in enumerate(dict.fromkeys(names))}
        if len(codes) == len(names):
            return Labels(self.codes, names)
        of_names = np.array([*(codes[name] for name in names), -1], np.int32)
        return Labels(of_names[self.codes], list(codes))

    def compact(self) -> Labels:
        """Return the same names of rows, without names that no row has."""
        used = np.bincount(self.codes + 1, minlength=len(self.names) + 1)[1:] > 0
        if used.all():
            return self
        codes = np.append(np.where(used, np.cumsum(used) - 1, -1), -1).astype(np.int32)
        return Labels(codes[self.codes], [name for name, has in zip(self.names, used, strict=True) if has])
