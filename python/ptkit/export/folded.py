"""Folded stacks: a line for each calling context, as flame graph programs and the Firefox Profiler read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ptkit.decode.plan import check_choice
from ptkit.errors import ConfigError
from ptkit.export.contexts import Contexts, contexts_of
from ptkit.export.files import NewFile, joined
from ptkit.export.frame_rows import ProfileTrace, is_emulated
from ptkit.info import EMULATED_TIMES

__all__ = ["MEASURES", "write_folded"]

#: Numbers that lines can have; the first one is the default.
MEASURES = ("instructions", "time", "calls")


def write_folded(
    trace: ProfileTrace,
    path: str,
    *,
    of: str = "instructions",
    names: str = "short",
    depth: int | None = None,
    frames: str = "native",
    inlines: bool = False,
    **query: Any,
) -> dict[str, Any]:
    """Write each calling context as a line: its functions, the outermost first, and a number.

    Parameters
    ----------
    trace : Trace
    path : str
        A file; an earlier one is replaced when the new one is complete.
    of : str
        Number of a line: ``"instructions"`` of the context alone, ``"time"`` (nanoseconds of the context
        alone), or ``"calls"``.
    names : str
        ``"short"`` or ``"full"`` names of functions.
    depth : int, optional
        Contexts with more callers count as that caller of theirs that has so many; None: 1,000.
    frames, inlines, **query
        As for `ptkit.Trace.call_tree`.

    Raises
    ------
    ConfigError
        If there are no times, or there is no such choice.

    Notes
    -----
    Contexts without such a number have no line. Names have ``\\x3b`` for a semicolon and so on for control
    characters.
    """
    check_choice("of", of, MEASURES)
    contexts = contexts_of(
        trace,
        names=names,
        sites=False,
        times=of == "time",
        depth=depth,
        frames=frames,
        inlines=inlines,
        **query,
    )
    notes = list(contexts.notes)
    if of == "time":
        if contexts.ns is None:
            raise ConfigError(f"of='time': {notes[-1] if notes else 'no times'}; or use of='instructions'")
        if is_emulated(trace):
            notes.append(EMULATED_TIMES)
    with NewFile(path) as file:
        for chunk in joined(_lines(contexts, of)):
            file.write(chunk)
    return {"bytes": file.bytes, "notes": notes}


def _lines(contexts: Contexts, of: str) -> Iterator[bytes]:
    """Lines, callers before what they call."""
    measured = {"instructions": contexts.own, "time": contexts.ns, "calls": contexts.count}[of]
    assert measured is not None
    values = measured.tolist()
    names = [name.replace(";", "\\x3b").encode() for name in contexts.functions.names]
    functions = contexts.function.tolist()
    rows, depths = contexts.preorder()
    stack: list[bytes] = []
    for row, depth in zip(rows.tolist(), depths.tolist(), strict=True):
        del stack[depth:]
        stack.append(names[functions[row]])
        if values[row]:
            yield b"%b %d\n" % (b";".join(stack), values[row])
