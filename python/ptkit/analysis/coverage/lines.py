"""Source lines of code as gcov has them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ptkit import _core
from ptkit.analysis.coverage.texts import Texts

__all__ = ["source_lines"]


def source_lines(
    session: _core.Session,
    ips: NDArray[np.uint64],
    spaces: NDArray[np.uint32],
    begins: NDArray[np.bool_],
    texts: Texts,
) -> tuple[NDArray[np.int32], NDArray[np.uint32]]:
    """Look up the lines of addresses, which ascend in each function.

    Parameters
    ----------
    session : _core.Session
    ips, spaces : numpy.ndarray, shape (n,)
    begins : numpy.ndarray of bool, shape (n,)
        The address is the begin of a function. Its code up to the next line is of the line on which the
        function is declared: line tables have that of its brace there.
    texts : Texts
        Gets the paths.

    Returns
    -------
    sources : numpy.ndarray of int32
        Numbers of paths in `texts`; -1: no line.
    lines : numpy.ndarray of uint32
    """
    sources, lines, paths = _core.name_lines(session, ips, spaces, None)
    has_line = (sources >= 0) & (lines > 0)  # 0: code that the compiler gives no line
    codes = np.where(has_line, texts.add(paths, sources), -1).astype(np.int32)
    lines = np.where(has_line, lines, 0).astype(np.uint32)
    at = np.flatnonzero(begins & has_line)
    _, declared, _ = _core.name_lines(session, ips[at], spaces[at], None, declared=True)
    is_new = np.ones(len(codes), np.bool_)
    is_new[1:] = (codes[1:] != codes[:-1]) | (lines[1:] != lines[:-1])
    is_new[at] = True
    run = np.cumsum(is_new) - 1
    of_runs = lines[is_new]
    of_runs[run[at]] = declared
    return codes, of_runs[run]
