"""Timelines of calls, for pictures of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from ptkit import decode as _decode
from ptkit.decode import Query
from ptkit.decode.call_table import check_frames, check_sums
from ptkit.errors import ConfigError
from ptkit.support.arguments import flag

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["Timelines"]


class Timelines(ABC):
    """The method of `Trace` that gives calls as slices of a timeline."""

    @abstractmethod
    def _plan(self, table: str, query: Query, **more: Any) -> _decode.Plan: ...

    @abstractmethod
    def _window(self, plan: _decode.Plan) -> _decode.Window | None: ...

    def call_timeline(
        self,
        by: str = "time",
        *,
        slices: int | None = None,
        frames: str = "native",
        inlines: bool = False,
        tails: str = "nested",
        **query: Unpack[Query],
    ) -> _decode.CallTimeline:
        """Calls of threads as slices that nest, whole or reduced to a number of slices.

        Parameters
        ----------
        by : str
            ``"time"``: positions are TSC ticks, at their earliest; calls of unknown begin or end are left
            out. ``"instructions"``: they are instructions of the thread within its stream.
        slices : int, optional
            At most so many slices, and as many if there are more calls. The slowest calls of each function,
            up to 100 each, stay whole; others merge with their neighbours of the same caller. None: each call
            has a slice.
        frames, inlines, tails
            As for `functions`.
        **query
            As for `calls`, without ``columns`` and ``order``. What calls that are not selected have called
            belongs to their callers.

        Returns
        -------
        ptkit.decode.CallTimeline

        Raises
        ------
        ConfigError, SymbolError, OutOfMemoryError
            As for `calls`.

        Examples
        --------
        >>> import ptkit
        >>> timeline = ptkit.record(["true"]).call_timeline(slices=100)
        >>> len(timeline) <= 100
        True
        """
        check_frames(frames, flag("inlines", inlines))
        check_sums("function", tails)
        for name in ("columns", "order"):
            if query.get(name) is not None:
                raise ConfigError(f"{name}: a timeline has its own; leave it out")
        plan = self._plan("calls", {**query, "columns": ["id"]})
        return _decode.read_timeline(
            plan,
            by=by,
            slices=slices,
            frames=frames,
            inlines=inlines,
            tails_replaced=tails == "replaced",
            window=self._window(plan),
        )
