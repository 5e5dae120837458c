"""Formats of recordings: those of the core, those that Python reads, and those that packages add."""

from __future__ import annotations

import os
from functools import cache
from typing import Any, cast

from ptkit import _core
from ptkit.errors import ConfigError, FormatError, UnsupportedError
from ptkit.readers.recording import Reader, Source

__all__ = ["formats", "open_recording", "readers"]

GROUP = "ptkit.readers"

# Files of these begin with a magic of their own: readers of packages are not loaded for them.
_FIRST = ("ptk", "perf.data")


@cache
def _own() -> tuple[Reader, ...]:
    """Readers, each tried before the format of the core that it names; of several with the same, in order."""
    from ptkit.readers.drakvuf import DRAKVUF  # takes a while, and most recordings need none
    from ptkit.readers.gdb_btrace import GDB_BTRACE
    from ptkit.readers.simple_pt import SIMPLE_PT
    from ptkit.readers.windows_intelpt import WINDOWS_INTELPT
    from ptkit.readers.xen import XEN

    return DRAKVUF, SIMPLE_PT, WINDOWS_INTELPT, GDB_BTRACE, XEN


@cache
def _core_names() -> tuple[str, ...]:
    """Formats that the core reads, in the order in which it tries them."""
    return tuple(name for name, _, _ in _core.formats())


def readers() -> dict[str, Reader]:
    """Return the readers in Python by name, in the order in which they are tried.

    Packages add theirs by an entry point of the group ``ptkit.readers``: a `Reader`. One that cannot be
    loaded is left out; names of ptkit's own formats cannot be taken.

    Examples
    --------
    >>> from ptkit import readers
    >>> readers.readers()["simple-pt"].description
    "simple-pt's ptout.N with ptout.sideband"
    """
    found = {reader.name: reader for reader in _own()}
    for reader in _added():
        if reader.name not in _core_names():
            found.setdefault(reader.name, reader)
    return found


@cache
def _added() -> tuple[Reader, ...]:
    from importlib.metadata import entry_points  # takes a while

    found = []
    for entry in entry_points(group=GROUP):
        try:
            reader = entry.load()
        except Exception:  # the import of another package's module may raise anything
            continue
        if isinstance(reader, Reader):
            found.append(reader)
    return tuple(found)


def formats() -> list[tuple[str, str, bool]]:
    """Return name, description and whether it is unverified of each format, in the order of detection."""
    rows = _core.formats()
    names = [name for name, _, _ in rows]
    added = readers().values()
    found = []
    for name, description, unverified in rows:
        for reader in added:
            if _rank(reader, names) == name:
                found.append((reader.name, reader.description, reader.unverified))
        found.append((name, description, unverified))
    return found


def _rank(reader: Reader, names: list[str] | tuple[str, ...]) -> str:
    """Return the format of the core before which a reader is tried."""
    return reader.before if reader.before in names and reader.before not in _FIRST else names[-1]


def _recognized(source: Source) -> Reader | str:
    """Return the reader of a source: in Python, or the name of that of the core; empty: none."""
    names = _core_names()
    if source.data is None:
        in_core = _core.recognized_format(os.fsencode(source.path))
    else:
        in_core = _core.recognized_format_of_bytes(source.data)
    if in_core in _FIRST:
        return in_core
    position = names.index(in_core) if in_core else len(names)
    for reader in readers().values():
        if reader.recognizes is None or names.index(_rank(reader, names)) > position:
            continue
        if (source.data is None or reader.reads_pipes) and reader.recognizes(source):
            return reader
    return in_core


def _named(name: str) -> Reader | str:
    if name in _core_names():
        return name
    known = readers()
    if name not in known:
        names = ", ".join(row[0] for row in formats())
        raise ConfigError(f"unknown format {name!r}; known formats: {names}")
    return known[name]


def open_recording(source: Source, format: str = "", bts_index: int | None = None) -> _core.Bundle:
    """Read a recording by its content, or by the reader of this name.

    Parameters
    ----------
    source : Source
    format : str
        Name of the reader; empty: by content.
    bts_index : int, optional
        Of a BTS buffer: the record that would be written next.

    Raises
    ------
    OpenError, FormatError
        If it cannot be read, or is no trace.
    ConfigError
        If there is no such reader.
    UnsupportedError
        If a recording of this format is several files, and the source is a pipe.
    """
    reader = _named(format) if format else _recognized(source)
    if isinstance(reader, str):
        binaries = [os.fsencode(folder) for folder in source.binaries]
        options = (reader, binaries, bts_index, source.without_psb)
        if source.data is None:
            return _core.open_bundle(os.fsencode(source.path), *options)
        return _core.open_bundle_bytes(os.fsencode(source.path), source.data, *options)
    if source.data is not None and not reader.reads_pipes:
        raise UnsupportedError(
            f"{source.path}: a recording of format {reader.name!r} is several files and cannot be read from "
            "a pipe; save the files to a folder and open the folder"
        )
    if source.is_folder and reader.reads_pipes:
        raise FormatError(
            f"{source.path}: is a folder, and a recording of format {reader.name!r} is one file; give that"
        )
    recording: Any = reader.read(source)
    recording.format = reader.name
    recording.source = os.fsencode(source.path)  # a path may be no UTF-8
    if source.is_folder:
        _core.list_outside_links(recording, os.fsencode(source.path))
    return cast(_core.Bundle, recording)
