"""The flaky case: `ptkit.suspects`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from ptkit.support.arguments import integer
from ptkit.trace.facade import Trace
from ptkit.trace.opening.opening import open as open_trace

if TYPE_CHECKING:
    from ptkit.analysis.suspects import Source, Suspects

__all__ = ["suspects"]

_MOST = 10**6


def suspects(
    passing: Iterable[str | os.PathLike[str] | Trace],
    failing: Iterable[str | os.PathLike[str] | Trace],
    *,
    module: str | Sequence[str] | None = None,
    symbol: str | Sequence[str] | None = None,
    limit: int = 1000,
    shuffles: int = 2000,
) -> Suspects:
    """Which branches, calls and paths separate failing from passing recordings of one command.

    Parameters
    ----------
    passing, failing : iterable of path or Trace
        Recordings. Paths are opened one after the other, so that one is in memory at a time.
    module, symbol : str or sequence of str, optional
        Only branches from and to these files, or functions, as `ptkit.decode.Query` has them. All of them
        count as the program's own code.
    limit : int
        Rows of the table.
    shuffles : int
        Random labelings of the recordings that the chance is estimated of, where there are more than 5,000.

    Returns
    -------
    ptkit.Suspects
        ``suspects.table``, the fact that separates best first, and ``suspects.sentence``: how easily chance
        does the same.

    Raises
    ------
    ConfigError
        If no recording of a group can be used, or one is given twice.

    Warns
    -----
    PtkitWarning
        Of each recording that is left out: it cannot be read, or has another build of a file.

    Notes
    -----
    docs/flaky.md says what the facts are, and how they are ranked.

    Examples
    --------
    >>> import ptkit
    >>> runs = [ptkit.record(["sh", "-c", f"exit {status}"]) for status in (0, 0, 1, 1)]
    >>> found = ptkit.suspects(runs[:2], runs[2:])
    >>> len(found.passing), len(found.failing), len(found.table) > 0
    (2, 2, True)
    """
    from ptkit.analysis.suspects import find_suspects

    query: dict[str, Any] = {
        name: value for name, value in (("module", module), ("symbol", symbol)) if value is not None
    }
    return find_suspects(
        _sources(passing),
        _sources(failing),
        query,
        limit=integer("limit", limit, 1, _MOST),
        shuffles=integer("shuffles", shuffles, 1, _MOST),
    )


def _sources(recordings: Iterable[str | os.PathLike[str] | Trace]) -> Iterator[Source]:
    from ptkit.analysis.suspects import Source

    for one in [recordings] if isinstance(recordings, (str, os.PathLike, Trace)) else recordings:
        if isinstance(one, Trace):
            yield Source(one.source, partial(_itself, one))
        else:
            yield Source(os.fspath(one), partial(open_trace, one))


def _itself(trace: Trace) -> Trace:
    return trace
