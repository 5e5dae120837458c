"""Texts of a set: names of functions and paths of source files, each once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["Texts"]


class Texts:
    """Texts, numbered in the order in which they were added first."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def add(self, texts: Sequence[str], rows: NDArray[np.int32] | None = None) -> NDArray[np.int32]:
        """Return the numbers of texts; or those of rows, which have indices of texts, or -1."""
        numbers = [self._numbers.setdefault(text, len(self._numbers)) for text in texts]
        found = np.array([*numbers, -1], np.int32)  # index -1: no text
        return found[:-1] if rows is None else found[rows]

    def all(self) -> tuple[str, ...]:
        """Return the texts by number."""
        return tuple(self._numbers)
