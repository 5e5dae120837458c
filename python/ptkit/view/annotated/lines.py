"""Source lines and inlined functions of instructions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ptkit import _core
from ptkit.view.annotated.idle import Unknown

__all__ = ["Lines", "lines_of"]


@dataclass
class Lines:
    """Source lines and inlined functions of instructions; None: not known. `idle`: lines of unknown bytes."""

    path: list[str | None]
    line: list[int]
    inlined: list[str | None]
    idle: list[tuple[str, int]]


def lines_of(
    session: _core.Session, ips: NDArray[np.uint64], spaces: NDArray[np.uint32], unknown: list[Unknown]
) -> Lines:
    path, line, paths = _core.name_lines(session, ips, spaces, None)
    levels = _core.inline_levels(session, ips, spaces)
    codes, names = _core.name_inlined(session, ips, spaces, None, None, levels)
    inlined = np.where(levels > 0, codes, -1)
    known = (path >= 0) & (line > 0)
    return Lines(
        [
            paths[one] if is_known else None
            for one, is_known in zip(path.tolist(), known.tolist(), strict=True)
        ],
        np.where(known, line, 0).tolist(),
        [names[one] if one >= 0 else None for one in inlined.tolist()],
        [one for some in unknown for one in _idle_lines(session, some)],
    )


def _idle_lines(session: _core.Session, unknown: Unknown) -> list[tuple[str, int]]:
    """Lines of bytes that did not run, by the debug information."""
    ips = np.arange(unknown.ip, unknown.ip + unknown.size, dtype=np.uint64)
    path, line, paths = _core.name_lines(session, ips, np.full(len(ips), unknown.space, np.uint32), None)
    pairs = zip(path.tolist(), line.tolist(), strict=True)
    return list(dict.fromkeys((paths[one], number) for one, number in pairs if one >= 0 and number > 0))
