"""A part of a trace: its tables, with a selection that always applies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ptkit import decode as _decode
from ptkit.decode import Query
from ptkit.trace.branching import Branching
from ptkit.trace.plots import Plots
from ptkit.trace.viewing import PartView

if TYPE_CHECKING:
    from ptkit.trace.whole import WholeTrace


class View(Branching, Plots, PartView):
    """The tables of a trace between two times, or those that touch some code.

    All methods of `Trace` that give tables are there, with the same arguments, and select among the
    rows of the view. ``errors`` and ``gaps``, its own and those of its tables, are selected as well. Frames
    are what they did within the time, or those of the functions.

    Made by `Trace.between` and `Trace.touching`.
    """

    def __init__(self, trace: WholeTrace, bound: Query, text: str) -> None:
        self._trace = trace
        self._bound = bound
        self._text = text
        others: Any = {name: value for name, value in bound.items() if name != "instructions"}
        trace.open_parts.plan("events", Query(), others)  # says what is wrong with it now

    def __repr__(self) -> str:
        return f"<ptkit.View of {self._trace.source!r}, {self._text}>"

    def _whole(self) -> WholeTrace:
        return self._trace

    def _span(self) -> tuple[int, int] | None:
        return self._trace.open_parts.times.span

    def _ranges_of(self, function: str) -> list[_decode.Range]:
        return self._trace.open_parts.ranges_of(function)

    def _plan(self, table: str, query: Query, **more: Any) -> _decode.Plan:
        return self._trace.open_parts.plan(table, query, self._bound, **more)

    def _bound_query(self) -> dict[str, Any] | None:
        return dict(self._bound)
