"""Exports of a trace and of its parts, also without paths and command lines."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ptkit import export as _export
from ptkit.support.arguments import flag
from ptkit.trace.names.code_segments import set_cs_base
from ptkit.trace.opening.bundle import open_source
from ptkit.trace.saving import save

if TYPE_CHECKING:
    from ptkit.export import Exported
    from ptkit.trace.whole import WholeTrace

__all__ = ["PartExport", "PartTrace", "export_trace", "redacted"]

# Facts of the whole trace that writers of its parts use. Rows come from the part.
_FACTS = frozenset(
    {
        "code",
        "disassemble",
        "format",
        "info",
        "inlines",
        "lines",
        "locate",
        "mappings",
        "modules",
        "open_parts",
        "opened",
        "source",
        "streams",
        "symbolize",
        "symbols",
    }
)
_REDACTED = "redacted.ptk"


class PartTrace:
    """A part of a trace with the facts of the trace, as writers take it."""

    def __init__(self, part: PartExport) -> None:
        self._part = part

    def __getattr__(self, name: str) -> Any:
        return getattr(self._part.trace if name in _FACTS else self._part, name)


class PartExport:
    """Exports of `View` and `Slice`."""

    _trace: WholeTrace

    @property
    def trace(self) -> WholeTrace:
        """The trace that it is a part of."""
        return self._trace

    def export(
        self,
        path: str | os.PathLike[str],
        format: str | None = None,
        *,
        redact: bool = False,
        **options: Any,
    ) -> Exported:
        """Write the rows of this part in another tool's format, as `Trace.export`.

        Parameters
        ----------
        path : path
            The file or folder to write; an earlier one is replaced when the new one is complete.
        format : str, optional
            A format that selects rows or blocks: not ``"perf.data"``, not ``"raw"``. None: the suffix of
            `path` says it.
        redact : bool
            Without paths, command lines and source.
        **options
            The format's own, and a selection among the rows of this part.

        Returns
        -------
        ptkit.export.Exported

        Raises
        ------
        ConfigError
            If the format writes whole recordings; else as for `Trace.export`.
        OpenError, UnsupportedError
            As for `Trace.export`.
        """
        if not flag("redact", redact):
            return _export.export(PartTrace(self), path, format=format, is_part=True, **options)
        with redacted(self._trace, path) as trace:
            part = copy(self)
            part._trace = trace
            return _export.export(PartTrace(part), path, format=format, is_part=True, **options)


def export_trace(
    trace: WholeTrace, path: str | os.PathLike[str], format: str | None, *, redact: bool, **options: Any
) -> Exported:
    """Write a whole trace; see `Trace.export`."""
    if not flag("redact", redact):
        return _export.export(trace, path, format=format, **options)
    with redacted(trace, path) as copied:
        return _export.export(copied, path, format=format, **options)


@contextmanager
def redacted(trace: WholeTrace, path: str | os.PathLike[str]) -> Iterator[WholeTrace]:
    """A copy of the trace without what `ptkit.redact` leaves out, in a file beside the output."""
    settings = replace(trace.opened.settings, index=None)
    beside = Path(os.fspath(path)).parent
    with tempfile.TemporaryDirectory(prefix=".ptkit-", dir=beside if beside.is_dir() else None) as folder:
        where = f"{folder}/{_REDACTED}"
        save(trace.open_parts, where, redact=True)
        bundle = open_source(where, None, sync=settings.sync)
        if settings.cs_base is not None:
            set_cs_base(bundle, settings.cs_base, settings.engine)
        bundle.set_sync(settings.sync)
        found = type(trace)(bundle, settings)
        parts = found.open_parts
        timed = parts.timed
        parts.described = replace(parts.described, source=_REDACTED)
        parts.timed = lambda: replace(timed(), source=_REDACTED)
        # Files and functions are selected by their own names.
        whole = trace.open_parts.scope
        parts.scope.module_ranges, parts.scope.symbol_ranges = whole.module_ranges, whole.symbol_ranges
        yield found
