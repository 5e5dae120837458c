"""Checks of memory before it is allocated: how much is free, and the error if that is too little."""

from __future__ import annotations

from ptkit import _core
from ptkit.errors import OutOfMemoryError

__all__ = ["budget", "free", "require_memory", "size_text", "too_large"]

#: Folder in which /proc and cgroups are looked up; empty: the machine's own.
ROOT = ""

#: Bytes that are taken without a look at what is free.
_SMALL = 16 << 20


def free() -> tuple[int, str]:
    """Bytes that this process may take, and the limit that says so.

    Returns
    -------
    tuple of int and str
        Of cgroups, RLIMIT_AS, RLIMIT_DATA and MemAvailable the least, less an eighth (512 MiB at most) that
        is left for everything else. Idle memory of the pool counts as free.
    """
    return _core.memory_left(ROOT)


def budget(
    row_bytes: int = 0, after_bytes: int = 0, *, most_rows: int | None = None, estimate: bool = True
) -> _core.RowBudget:
    """Make what the readers of a table ask while its rows grow.

    Parameters
    ----------
    row_bytes : int
        Bytes that a row takes while it is read; 0: rows are only counted.
    after_bytes : int
        Bytes that a row takes besides, afterwards.
    most_rows : int, optional
        Where rows are only counted: stop after so many.
    estimate : bool
        Stop where the rows to come seem not to fit, going by the bytes of the streams.
    """
    return _core.RowBudget(
        row_bytes=row_bytes, after_bytes=after_bytes, most_rows=most_rows, estimate=estimate, root=ROOT
    )


def size_text(size: int) -> str:
    """A size as text: ``"1.5 GiB"``."""
    if size < 1 << 20:
        return f"{size / 2**10:.1f} KiB"
    return f"{size / 2**20:.1f} MiB" if size < 1 << 30 else f"{size / 2**30:,.1f} GiB"


def too_large(
    what: str, size: int, remedy: str, *, about: bool = False, least: bool = False
) -> OutOfMemoryError:
    """Make the error for an allocation of more than is free.

    Parameters
    ----------
    what : str
        What it is, with its number of rows.
    size : int
        Bytes that it takes.
    remedy : str
        What to do instead.
    about : bool
        The number of bytes is an estimate.
    least : bool
        It takes more than these bytes.
    """
    left, limit = free()
    takes = f"{what} take {'about ' if about else 'more than ' if least else ''}{size_text(size)}"
    return OutOfMemoryError(f"{takes}, and {size_text(left)} are free ({limit})", remedy)


def require_memory(what: str, size: int, remedy: str) -> None:
    """Raise OutOfMemoryError if so many bytes are not free; call it before they are taken."""
    if size <= _SMALL:
        return
    left, idle = free()[0], _core.pool_bytes()
    if size > left:
        raise too_large(what, size, remedy)
    if size > left - idle:  # NumPy does not take memory of the pool
        _core.trim_memory()
