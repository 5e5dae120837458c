"""Locations of a run in words: function, file and line."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptkit import _core
from ptkit.support.text import module_name

__all__ = ["Location", "Named", "is_jit_list", "named"]


_JIT_LIST = re.compile(r"perf-\d+\.map")


def is_jit_list(path: str) -> bool:
    """Whether a path is that of the symbols that a JIT compiler lists: one for each process."""
    return _JIT_LIST.fullmatch(module_name(path)) is not None


class Location(NamedTuple):
    """Where an address is.

    Attributes
    ----------
    module : str or None
        Name of the file; None: in none.
    path : str or None
    rva : int
        In the file, else the address.
    function : str or None
        Full name.
    source : str or None
        Path of the source file.
    line : int
    """

    module: str | None
    path: str | None
    rva: int
    function: str | None
    source: str | None
    line: int

    def __str__(self) -> str:
        parts = []
        if self.function is not None and not self.function.startswith(f"{self.module}!"):
            parts.append(_core.short_names([self.function])[0])
        if self.source is not None:
            parts.append(f"{module_name(self.source)}:{self.line}")
        if self.source is None or not parts:
            if self.module is not None:
                parts.append(f"{self.module}+{self.rva:#x}")
            elif not parts:
                parts.append(f"{self.rva:#x}")
        return " ".join(parts)


class Named:
    """Names of the addresses of a run.

    Parameters
    ----------
    session : _core.Session
    files : sequence of (str, str)
        Path and build-id.
    """

    def __init__(self, session: _core.Session, files: Sequence[tuple[str, str]]) -> None:
        self._session = session
        self._paths = [path for path, _ in files]

    def __call__(self, ips: Sequence[int], spaces: Sequence[int]) -> list[Location]:
        """Name addresses."""
        return named(self._session, self._paths, np.array(ips, np.uint64), np.array(spaces, np.uint32))


def named(
    session: _core.Session, paths: Sequence[str], ips: NDArray[np.uint64], spaces: NDArray[np.uint32]
) -> list[Location]:
    """Name addresses."""
    if not len(ips):
        return []
    files, rvas = _core.name_files(session, ips, spaces, None, None, True, True)
    symbols, _, names = _core.name_symbols(session, ips, spaces, None, None, True, False)
    sources, lines, texts = _core.name_lines(session, ips, spaces, None)
    found = []
    columns = (one.tolist() for one in (ips, files, rvas, symbols, sources, lines))
    for ip, file, rva, symbol, source, line in zip(*columns, strict=True):
        path = paths[file] if 0 <= file < len(paths) and not is_jit_list(paths[file]) else None
        found.append(
            Location(
                None if path is None else module_name(path),
                path,
                ip if path is None else rva,
                names[symbol] if symbol >= 0 else None,
                texts[source] if source >= 0 and line > 0 else None,
                line if source >= 0 else 0,
            )
        )
    return found
