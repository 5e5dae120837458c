"""Formats for export: ptkit's own, and those that packages add as entry points ``ptkit.exporters``."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ptkit.errors import ConfigError
from ptkit.export.code import write_code
from ptkit.export.drcov import write_drcov
from ptkit.export.offsets import write_offsets
from ptkit.export.perf_data import write_perf_data
from ptkit.export.raw import write_raw

__all__ = ["Exported", "Exporter", "export", "exporters"]

GROUP = "ptkit.exporters"


@dataclass(frozen=True)
class Exported:
    """Report on a written file.

    Attributes
    ----------
    path : str
        File or folder.
    format : str
        Name of the format.
    bytes : int
        Size of the file that has the trace.
    files : tuple of str
        Further files that were written, beside it.
    notes : tuple of str
        Sentences: what the format cannot hold, and what was made up because it needs it.
    """

    path: str
    format: str
    bytes: int
    files: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Exporter:
    """A format that traces can be written in.

    Attributes
    ----------
    name : str
        Name for ``Trace.export(format=...)``.
    description : str
        One line.
    write : callable
        ``write(trace, path, **options)`` writes a `ptkit.Trace`; returns a dict with any of ``bytes``,
        ``files`` and ``notes``. ``trace.opened`` (`ptkit.decode.OpenTrace`) has the core's objects.
    selects : str
        Its options select ``"blocks"`` (those of `ptkit.decode.Query`), ``"stream"`` (the one that
        ``stream`` is the index of), or nothing. `ptkit export` takes its options of a selection by this.
    switches : tuple of str
        Options of `write` that are True or False: those of ``file_offsets`` and ``hits`` that it has.
    """

    name: str
    description: str
    write: Callable[..., dict[str, Any]]
    selects: str = ""
    switches: tuple[str, ...] = ()


_OWN = (
    Exporter("perf.data", "for Linux perf, and what reads its files", write_perf_data),
    Exporter(
        "drcov", "executed basic blocks by module, for coverage tools of disassemblers", write_drcov, "blocks"
    ),
    Exporter(
        "offsets",
        "executed basic blocks as lines of module+offset",
        write_offsets,
        "blocks",
        ("file_offsets", "hits"),
    ),
    Exporter("raw", "the packets of a stream as the processor wrote them", write_raw, "stream"),
    Exporter("code", "the code that was executed, a file for each region and version", write_code, "blocks"),
)


def exporters() -> dict[str, Exporter]:
    """Return the known formats by name.

    Packages add theirs by an entry point of the group ``ptkit.exporters``: an `Exporter`. One that cannot be
    loaded is left out; ptkit's own names cannot be taken.

    Examples
    --------
    >>> from ptkit import export
    >>> export.exporters()["perf.data"].description
    'for Linux perf, and what reads its files'
    """
    from importlib.metadata import entry_points  # takes a while, and is not needed to open traces

    found = {}
    for entry in entry_points(group=GROUP):
        try:
            exporter = entry.load()
        except Exception:  # the import of another package's module may raise anything
            continue
        if isinstance(exporter, Exporter):
            found[exporter.name] = exporter
    found.update({exporter.name: exporter for exporter in _OWN})
    return found


def _check_options(exporter: Exporter, options: dict[str, Any]) -> None:
    try:
        signature = inspect.signature(exporter.write)
    except (TypeError, ValueError):  # of a callable that does not say what it takes
        return
    try:
        signature.bind(None, "", **options)
    except TypeError as error:
        names = ", ".join(list(signature.parameters)[2:]) or "none"
        raise ConfigError(f"format {exporter.name!r}: {error}; its options: {names}") from None


def export(trace: object, path: str | os.PathLike[str], *, format: str, **options: Any) -> Exported:
    """Write a trace; see `ptkit.Trace.export`."""
    known = exporters()
    if format not in known:
        raise ConfigError(f"format={format!r} is not one of {', '.join(sorted(known))}")
    text = os.fspath(path)
    if not text or "\0" in text:
        raise ConfigError(f"path={path!r} is no path: it is empty or has a NUL")
    text = text.rstrip("/") or "/"  # shells append a slash to folders
    source = Path(getattr(trace, "source", ""))
    if source.exists() and Path(text).exists() and Path(text).samefile(source):
        raise ConfigError(f"{text}: is what is read; export to another file")
    _check_options(known[format], options)
    said = known[format].write(trace, text, **options)
    return Exported(
        text, format, int(said.get("bytes", 0)), tuple(said.get("files", ())), tuple(said.get("notes", ()))
    )
