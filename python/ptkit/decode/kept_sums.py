"""Sums over frames that a trace keeps, so that a second question costs no second decode."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Any

__all__ = ["KeptSums", "Sums", "bytes_of"]

#: Bytes of all sums that a trace keeps, and their number.
_MOST_BYTES = 64 << 20
_MOST_SUMS = 32


def bytes_of(part: Any) -> int:
    """Bytes of a table of the core: of its columns and runs."""
    _, arrays, runs = part
    return sum(array.nbytes for array in (*arrays.values(), *runs.values()))


@dataclass(frozen=True)
class Sums:
    """Results of one pass over the frames of some streams: tables as the core makes them.

    Attributes
    ----------
    rows : mapping of str to tables
        By what frames are summed up by: ``"function"``, ``"entry"``, ``"module"`` and ``"tree"``. A tree that
        was not asked for is missing where it is large.
    sides : tuple of tables
        The errors and gaps that come with each.
    """

    rows: Mapping[str, Any]
    sides: tuple[Any, Any]

    @property
    def nbytes(self) -> int:
        """Bytes of all tables."""
        return sum(map(bytes_of, (*self.rows.values(), *self.sides)))

    def without_large(self, most_bytes: int) -> Sums:
        """Leave out the largest sums, so that the others have so many bytes at most."""
        left = most_bytes - sum(map(bytes_of, self.sides))
        rows: dict[str, Any] = {}
        for name, one in sorted(self.rows.items(), key=lambda item: bytes_of(item[1])):
            left -= bytes_of(one)
            if left < 0:
                break
            rows[name] = one
        return Sums(rows, self.sides)


class KeptSums:
    """The last sums that were asked for, of bounded size. Threads may use it at the same time."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._sums: dict[Hashable, Sums] = {}  # the last used one is the last

    def find(self, key: Hashable, table: str) -> Sums | None:
        """Sums of these frames that have the rows `table`."""
        with self._lock:
            found = self._sums.get(key)
            if found is None or table not in found.rows:
                return None
            self._sums[key] = self._sums.pop(key)
            return found

    def keep(self, key: Hashable, sums: Sums) -> None:
        """Keep sums, and drop those that were not used for longest where all are too large."""
        sums = sums.without_large(_MOST_BYTES)
        with self._lock:
            self._sums.pop(key, None)
            if not sums.rows:
                return
            self._sums[key] = sums
            while len(self._sums) > _MOST_SUMS or self._nbytes() > _MOST_BYTES:
                del self._sums[next(iter(self._sums))]

    @property
    def nbytes(self) -> int:
        """Bytes of all that is kept."""
        with self._lock:
            return self._nbytes()

    def _nbytes(self) -> int:
        return sum(one.nbytes for one in self._sums.values())
