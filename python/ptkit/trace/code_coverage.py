"""Coverage of a trace, or of a part of it, as a set."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from ptkit import decode as _decode
from ptkit.decode import Query
from ptkit.errors import ConfigError
from ptkit.trace.parts import with_targets
from ptkit.trace.tables import Tables

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ptkit.analysis.coverage import Coverage
    from ptkit.table import Table

__all__ = ["CodeCoverage"]


class _Source(Protocol):
    """A trace, as far as coverage uses it."""

    @property
    def source(self) -> str:
        """Path or description."""

    @property
    def opened(self) -> _decode.OpenTrace:
        """The bundle, and the session that decodes it."""


_NOT_OF_CODE = ("columns", "order", "kind", "taken")


class CodeCoverage(Tables):
    """The method of `Trace` that says what ran, as a set."""

    @abstractmethod
    def _whole(self) -> _Source:
        """The trace that this is, or is a part of."""

    def _one_stream(self) -> int | None:
        """The only stream that this has rows of; None: it may have several."""
        return None

    def coverage(self, **query: Unpack[Query]) -> Coverage:
        """What ran: blocks, edges, functions and source lines with counts, as a set.

        Parameters
        ----------
        **query
            See `ptkit.decode.Query`: a thread, a time, a module, ... Not ``columns``, ``order``, ``kind`` and
            ``taken``.

        Returns
        -------
        ptkit.Coverage
            Its elements are known by file and RVA, so that sets of several recordings combine:
            ``a | b``, ``a & b``, ``a - b``, ``a ^ b``.

        Raises
        ------
        ConfigError, SymbolError, DecodeError, OutOfMemoryError
            As for `branches`.

        Notes
        -----
        The trace is decoded once, a slice twice; memory grows with distinct code only. Code that was replaced
        is counted as it was last. docs/coverage-sets.md has the rules.

        Examples
        --------
        >>> import ptkit
        >>> trace = ptkit.record(["true"])
        >>> early, late = trace.between(percent=(0, 50)), trace.between(percent=(50, 100))
        >>> only_late = late.coverage() - early.coverage()
        >>> 0 < only_late.covered("block") < trace.coverage().covered("block")
        True
        """
        for name in _NOT_OF_CODE:
            if query.get(name) is not None:
                raise ConfigError(f"{name}: coverage is of all branches of the code; leave it out")
        from ptkit.analysis.coverage import read_coverage

        plan, code, edges = self._counts(query)
        trace = self._whole()
        return read_coverage(plan, code, edges, trace.opened.bundle.files, trace.source)

    def code_counts(self, **query: Unpack[Query]) -> tuple[_decode.ExecutedCode, Table]:
        """Executed instructions and the edges between them, with counts, by one pass (a slice: by two).

        Parameters
        ----------
        **query
            As for `coverage`.

        Returns
        -------
        code : ptkit.decode.ExecutedCode
            By address space and address.
        edges : Table
            Edges to known targets, with `ptkit.decode.EDGE_COLUMNS`.
        """
        _, code, edges = self._counts(query)
        return code, edges

    def _counts(self, query: Query) -> tuple[_decode.Plan, _decode.ExecutedCode, Table]:
        """A plan of what was counted, the code, and its edges."""
        plan = self._plan("edges", {**query, "columns": _decode.EDGE_COLUMNS})
        plan = replace(plan, selection=plan.selection | _decode.ALL_EDGES)
        code, edges = _decode.read_counts(plan)
        return plan, code, with_targets(edges)
