"""Speed of decoding tables, for ``ptkit bench``."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

from ptkit import _core
from ptkit.table import Table
from ptkit.trace import Trace

__all__ = ["TABLES", "Figure", "measure"]

#: Tables in the order of the result, with the columns that are read.
TABLES: dict[str, tuple[str, ...]] = {
    "packets": ("offset", "kind", "ip", "payload"),
    "edges": ("from_ip", "to_ip", "kind", "count"),
    "branches": ("from_ip", "to_ip", "kind"),
    "instructions": ("ip",),
}
_FEWEST = 2  # rounds: the first one decodes code too


@dataclass(frozen=True)
class Figure:
    """One line of the result.

    Attributes
    ----------
    table, engine, isa : str
        Table that was decoded, and the decoder.
    threads : int
        Upper limit.
    rows : int
        Rows in a round; for edges, branches.
    errors : int
        Rows of the errors table.
    bytes : int
        Of trace, in a round.
    seconds : float
        Wall time of the fastest round.
    rounds : int
        How many there were.
    whole : bool
        False: stopped before the end of the trace, since that would have taken too long; `bytes` is an
        estimate by rows.
    """

    table: str
    engine: str
    isa: str
    threads: int
    rows: int
    errors: int
    bytes: int
    seconds: float
    rounds: int
    whole: bool = True

    @property
    def megabytes_per_second(self) -> float:
        """10**6 bytes of trace in a second."""
        return self.bytes / self.seconds / 1e6

    @property
    def rows_per_second(self) -> float:
        """Rows in a second."""
        return self.rows / self.seconds


def _parts(trace: Trace, table: str, threads: int) -> Iterator[Table]:
    if table == "edges":
        yield trace.edges(threads=threads)
        return
    read = getattr(trace, f"iter_{table}")
    yield from read(reuse=True, columns=TABLES[table], threads=threads)


def _round(trace: Trace, table: str, threads: int, deadline: float | None) -> tuple[int, int, bool]:
    """Rows, errors, and whether the whole trace was decoded; reads one value of each part."""
    rows = errors = 0
    for part in _parts(trace, table, threads):
        errors += len(part.errors or ())
        if table == "edges":
            rows += int(part["count"].sum())
        elif len(part):
            rows += len(part)
            part[TABLES[table][0]][-1]
        if deadline is not None and time.perf_counter() > deadline:
            return rows, errors, False
    return rows, errors, True


def measure(trace: Trace, table: str, *, threads: int, seconds: float, like: Figure | None = None) -> Figure:
    """Time rounds of decoding a table.

    Parameters
    ----------
    trace : Trace
        Its engine decodes.
    table : str
        A key of `TABLES`.
    threads : int
        Upper limit.
    seconds : float
        Time for all rounds; two are made at least.
    like : Figure, optional
        Of the same table of the same trace. With it only `seconds` are taken: one round may do, or a part
        of one.
    """
    begin = time.perf_counter()
    fewest, deadline = (_FEWEST, None) if like is None else (1, begin + seconds)
    rows, errors, whole = _round(trace, table, threads, deadline)
    best, rounds, size = time.perf_counter() - begin, 1, trace.info.bytes
    if not whole and like is not None:
        size = size * rows // max(like.rows, 1)
    while whole and (rounds < fewest or time.perf_counter() - begin < seconds):
        start = time.perf_counter()
        if not _round(trace, table, threads, deadline)[2]:
            break
        best, rounds = min(best, time.perf_counter() - start), rounds + 1
    engine = trace.info.engine
    isa = _core.isa() if engine == "ptkit" else ""
    return Figure(table, engine, isa, threads, rows, errors, size, best, rounds, whole)
