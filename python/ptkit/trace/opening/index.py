"""Index files of traces: built, found, or refused with the reason."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ptkit import _core
from ptkit.decode import IndexSums, OpenTrace
from ptkit.decode.plan import thread_count
from ptkit.errors import ConfigError, PtkitError, TraceWarning
from ptkit.support.text import counted

#: How often the whole trace is decoded to make an index: for the segments, the frames and the edges.
PASSES = 3
#: Bytes of trace in a segment, about.
SEGMENT = 1 << 20
ENDING = ".ptindex"


@dataclass(frozen=True)
class IndexInfo:
    """An index that a trace has.

    Attributes
    ----------
    path : str or None
        Its file; None if it is kept in memory only.
    size_bytes : int
        Of the file.
    segments : int
        Parts that can be decoded alone, of all streams.
    """

    path: str | None
    size_bytes: int
    segments: int

    def __str__(self) -> str:
        where = "in memory" if self.path is None else self.path
        return f"{where}: {self.size_bytes:,} bytes, {counted(self.segments, 'segment')}"


def path_beside(source: str) -> Path:
    """Where `ptkit.open` looks for the index of a trace."""
    return Path(source.rstrip("/") + ENDING)


def _info(index: _core.Index, path: Path | None) -> IndexInfo:
    segments = sum(len(index.segments(stream)) for stream in range(index.streams))
    return IndexInfo(None if path is None else str(path), index.size, segments)


def _open(path: Path, opened: OpenTrace, source: str) -> _core.Index:
    resync = opened.settings.resync
    return _core.Index.open(os.fsencode(path), opened.session, resync=resync, trace=os.fsencode(source))


def sums_of(index: _core.Index, opened: OpenTrace) -> IndexSums:
    """Sums that the index of a trace has."""
    bundle = opened.bundle
    limits = {"file": max(len(bundle.files), 1), "space": len(bundle.spaces), "stream": len(bundle.streams)}
    return IndexSums(index, opened.session, limits)


def make(
    opened: OpenTrace,
    source: str,
    path: str | os.PathLike[str] | None,
    *,
    save: bool,
    threads: int | None,
    sums: Callable[[_core.Index], bytes],
) -> tuple[_core.Index, IndexInfo]:
    """Build the index of a trace with its sums and write it, unless a usable index exists."""
    target: Path | None = None
    if path is not None:
        target = Path(path)
    elif save:
        if not (Path(source).is_file() or Path(source).is_dir()):  # memory, or a pipe
            raise ConfigError(f"{source}: has no path; give a path for the index, or save=False")
        target = path_beside(source)
    if save and target is not None and target.exists():
        try:
            found = _open(target, opened, source)
        except PtkitError:
            pass  # the index is built anew
        else:
            if sums_of(found, opened).is_current:
                return found, _info(found, target)
    try:
        index = _core.Index.build(
            opened.session,
            resync=opened.settings.resync,
            threads=thread_count(opened.settings.threads if threads is None else threads),
            segment=SEGMENT,
            trace=os.fsencode(source),
        )
    except ValueError as error:
        raise ConfigError(f"{source}: {error}") from None
    index = index.with_sums(
        opened.session, resync=opened.settings.resync, trace=os.fsencode(source), sums=sums(index)
    )
    if save and target is not None:
        index.save(os.fsencode(target))
        return index, _info(index, target)
    return index, _info(index, None)


def find(
    opened: OpenTrace, source: str, path: str | os.PathLike[str] | None
) -> tuple[_core.Index | None, TraceWarning | None]:
    """Open the index of a trace, or return the reason why it cannot be used."""
    target = path_beside(source) if path is None else Path(path)
    if not target.is_file() and path is None:
        return None, None
    try:
        index = _open(target, opened, source)
    except (PtkitError, ValueError) as error:
        return None, _core.make_warning("INDEX_UNUSABLE", [str(error)], str(target))
    return index, None
