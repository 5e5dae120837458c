"""What branches of two runs are compared by: files by their identity, and RVAs."""

from __future__ import annotations

import re
import zlib
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptkit import _core

__all__ = ["Keys", "Locations", "is_python_name"]

_FROM, _TO, _KIND = (np.uint64(one) for one in (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9))
_FILE = np.uint64(48)  # bits of an RVA
_MIX = np.uint64(32)
OUTSIDE, PYTHON = 0xFFFE, 0xFFFD  # numbers of code in no file, and of Python functions
_PYTHON_NAME = re.compile(r"[^ ()]+ \((?:[^()]*\.py|<[^()]*>)\)")  # as the core gives it
_UNKNOWN = np.uint64(0xFFFF << 48)


def is_python_name(name: str) -> bool:
    """Whether a function is one of Python."""
    return _PYTHON_NAME.fullmatch(name) is not None


class Locations(NamedTuple):
    """Ends of branches.

    Attributes
    ----------
    file : numpy.ndarray of int32
        Number of the file that both runs share; -1: none.
    key : numpy.ndarray of uint64
        The same for the same place in both runs.
    """

    file: NDArray[np.int32]
    key: NDArray[np.uint64]


class Keys:
    """Keys of the branches of one run.

    Parameters
    ----------
    session : _core.Session
    numbers : numpy.ndarray of int32
        Number that both runs have for each file of the trace.
    differ : numpy.ndarray of bool
        By number: both runs have other builds of the file, so that its RVAs do not compare.
    python_only : bool
        Only branches to and from Python functions are compared.
    """

    def __init__(
        self,
        session: _core.Session,
        numbers: NDArray[np.int32],
        differ: NDArray[np.bool_],
        *,
        python_only: bool = False,
    ) -> None:
        self._python_only = python_only
        self._session = session
        self._numbers = np.append(numbers, np.int32(-1))
        self._prefixes = self._numbers.astype(np.uint64) << _FILE
        self._last = np.uint32(len(numbers))
        self._differ = np.append(differ, np.False_) if differ.any() else None

    def locations(
        self, ips: NDArray[np.uint64], spaces: NDArray[np.uint32], known: NDArray[np.bool_]
    ) -> Locations:
        """Files of addresses, and their keys."""
        found, rvas = _core.name_files(self._session, ips, spaces, None, None, True, True)
        numbers = np.minimum(found.view(np.uint32), self._last)  # -1 is the last one, too
        key = self._prefixes[numbers]
        files = self._numbers[numbers]
        if self._differ is not None:
            differ = self._differ[files]
            rvas[differ] = 0
        key |= rvas
        if (outside := files < 0).any():
            outside &= known
            if outside.any():
                key[outside] = self._outside(ips[outside], spaces[outside], rvas[outside])
        if not known.all():
            key[~known] = _UNKNOWN
            files[~known] = -1
        return Locations(files, key)

    def _outside(
        self, ips: NDArray[np.uint64], spaces: NDArray[np.uint32], offsets: NDArray[np.uint64]
    ) -> NDArray[np.uint64]:
        """Code in no file (JIT code): by its name and the offset in it, else the offset in its memory."""
        distinct, back = np.unique(ips, return_inverse=True)
        first = np.empty(len(distinct), np.intp)
        first[back[::-1]] = np.arange(len(ips))[::-1]
        codes, inside, names = _core.name_symbols(
            self._session, distinct, spaces[first], None, None, True, False
        )
        hashes = np.array([zlib.crc32(name.encode()) for name in names] + [0], np.uint64)
        named = (hashes[codes] << np.uint64(16)) + inside
        tags = np.array(
            [PYTHON if is_python_name(name) else OUTSIDE for name in names] + [OUTSIDE], np.uint64
        )
        where = np.where(codes >= 0, named, offsets[first]) & np.uint64((1 << 48) - 1)
        found: NDArray[np.uint64] = (where | (tags[codes] << _FILE))[back]
        return found

    def inside(self, begin: Locations, end: Locations) -> NDArray[np.bool_] | None:
        """Branches that are left out, as those within a file of two builds; None: there are none."""
        if self._python_only:
            kept: NDArray[np.bool_] = (begin.key >> _FILE == PYTHON) | (end.key >> _FILE == PYTHON)
            return ~kept
        if self._differ is None:
            return None
        found: NDArray[np.bool_] = self._differ[begin.file] & (self._differ[end.file] | (end.file < 0))
        return found

    @staticmethod
    def of_rows(begin: Locations, end: Locations, kinds: NDArray[np.uint8]) -> NDArray[np.uint64]:
        """Keys of branches."""
        found: NDArray[np.uint64] = begin.key * _FROM
        found ^= found >> _MIX
        found += end.key * _TO
        found += kinds.astype(np.uint64) * _KIND
        return found
