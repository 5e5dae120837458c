"""The warning where a stream shows signs of an address filter, and none is known."""

from __future__ import annotations

from ptkit import _core
from ptkit.trace.late_warnings import LateWarnings

__all__ = ["SuspectedFilter"]

# One may be code that differs from the image for a moment, such as a breakpoint.
_ENOUGH = 2


class SuspectedFilter(LateWarnings):
    """Says once that a filter seems to have been active.

    Parameters
    ----------
    session : _core.Session
        Counts the signs.
    source : str
        Path of the trace.
    """

    def __init__(self, session: _core.Session, source: str) -> None:
        super().__init__()
        self._session = session
        self._source = source

    def look(self) -> None:
        """Warn if decoders met enough signs."""
        signs = self._session.filter_signs
        if self.warnings or signs < _ENOUGH:
            return
        self._warn(_core.make_warning("FILTER_LIKELY", [str(signs)], self._source))
