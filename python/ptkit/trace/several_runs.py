"""Several recordings against each other: `ptkit.diff` and `ptkit.suspects`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ptkit.decode import Query
from ptkit.decode.plan import check_choice
from ptkit.errors import ConfigError
from ptkit.support.arguments import flag, integer
from ptkit.support.text import module_name
from ptkit.trace.code_coverage import CodeCoverage
from ptkit.trace.facade import Trace
from ptkit.trace.opening.opening import open as _open

if TYPE_CHECKING:
    from ptkit.analysis.diff import Difference
    from ptkit.analysis.diff.sequence import Row
    from ptkit.analysis.suspects import Source, Suspects

__all__ = ["diff", "suspects"]

_LAST_TID = 2**31 - 1
_MOST = 10**6


def diff(
    a: str | os.PathLike[str] | CodeCoverage,
    b: str | os.PathLike[str] | CodeCoverage,
    *,
    module: str | Sequence[str] | None = None,
    symbol: str | Sequence[str] | None = None,
    own: bool = False,
    time: tuple[int | None, int | None] | None = None,
    tid: int | None = None,
    by: str | None = None,
    frames: str = "native",
) -> Difference:
    """Compare two runs: where their threads part, and what only one of them did.

    Parameters
    ----------
    a, b : path, Trace, View or Slice
        Two runs of one program: a recording, or a part of one (``trace.between(...)``).
    module, symbol : str or sequence of str, optional
        Files and functions (names and patterns) of which divergences count. All code is compared.
    own : bool
        Divergences count that are in the program's own files, not in those of the system: address
        randomisation alone changes paths in the loader and in ``memcpy``.
    time : tuple of int, optional
        ``(t0, t1)`` in TSC ticks: divergences count that run `a` had in [t0, t1).
    tid : int, optional
        Thread of run `a` or of run `b` that is compared; None: all.
    by : str, optional
        ``"function"`` or ``"line"``: compare how often each was executed, and its instructions. None: branch
        by branch; two builds of the program by function.
    frames : str
        ``"native"``, or ``"python"``: only calls of Python functions and returns from them are compared
        (CPython 3.12 or later with ``-X perf``), so that what its interpreter does for addresses and hashes
        does not matter.

    Returns
    -------
    Difference
        ``equal``, ``first()``, and the tables ``threads``, ``divergences``, ``functions``, ``calls`` and
        ``lines``.

    Raises
    ------
    ConfigError, OpenError
        If an argument is no run, or `tid` is a thread of neither run.

    Notes
    -----
    Branches are known by the identity of their file (build-id) and RVA: load addresses do not matter. Each
    run is decoded once, and again for stacks and costs. docs/diff.md has the rules.

    Examples
    --------
    >>> import ptkit
    >>> trace = ptkit.record(["true"])
    >>> ptkit.diff(trace, trace).equal
    True
    """
    check_choice("frames", frames, ("native", "python"))
    if by is not None:
        check_choice("by", by, ("function", "line"))
        if time is not None:
            raise ConfigError(
                "time: functions and lines are of whole runs; give parts of both: a.between(seconds=(0, 1))"
            )
    from ptkit.analysis.diff import Run
    from ptkit.analysis.diff.difference import difference

    parts = _part(a, "a"), _part(b, "b")
    runs = [Run.of(part) for part in parts]
    if tid is not None:
        tid = integer("tid", tid, 0, _LAST_TID)
        if not any(tid == one for run in runs for _, one, _ in run.info.threads):
            raise ConfigError(f"tid={tid}: neither run has such a thread")
    modules = _texts(module)
    known = {name for run in runs for one in run.info.modules for name in (one.path, module_name(one.path))}
    for name in modules:
        if name not in known:
            names = sorted({module_name(one) for one in known})
            raise ConfigError(f"module={name!r}: neither run has such a file; there are {', '.join(names)}")
    within = None if time is None else _within(parts[0], time)
    sources = tuple(run.info.source for run in runs)
    assert len(runs) == len(sources) == 2
    return difference(
        runs[0],
        runs[1],
        (sources[0], sources[1]),
        module=modules,
        symbol=_texts(symbol),
        own=flag("own", own),
        within=within,
        tid=tid,
        by=by,
        frames=frames,
    )


def _part(run: object, name: str) -> CodeCoverage:
    if isinstance(run, (str, os.PathLike)):
        trace: CodeCoverage = _open(run)
        return trace
    if not isinstance(run, CodeCoverage):
        raise ConfigError(
            f"{name} is {type(run).__name__}: diff() compares two recordings: paths, traces, "
            "or parts of these such as trace.between(...)"
        )
    return run


def _texts(names: str | Sequence[str] | None) -> tuple[str, ...]:
    return () if names is None else (names,) if isinstance(names, str) else tuple(names)


def _within(part: CodeCoverage, time: tuple[int | None, int | None]) -> Callable[[Row], bool]:
    """Whether a branch is in an interval of time."""
    limits: dict[int, tuple[int, int]] = {}
    query = Query(time=time, columns=["instruction", "stream"], errors="rows")
    for table in part.iter_branches(**query):
        streams, numbers = np.asarray(table["stream"]), np.asarray(table["instruction"])
        for stream in np.unique(streams).tolist():
            own = numbers[streams == stream]
            low, high = limits.get(stream, (int(own[0]), int(own[-1])))
            limits[stream] = min(low, int(own[0])), max(high, int(own[-1]))

    def within(row: Row) -> bool:
        low, high = limits.get(row.stream, (1, 0))
        return low <= row.instruction <= high

    return within


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
            yield Source(os.fspath(one), partial(_open, one))


def _itself(trace: Trace) -> Trace:
    return trace
