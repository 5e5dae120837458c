"""Annotated code of a trace and of its parts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from ptkit.decode.plan import check_choice
from ptkit.errors import ConfigError
from ptkit.support.arguments import flag, integer

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ptkit.decode import Query
    from ptkit.view import ViewTrace
    from ptkit.view.annotated import Annotation

__all__ = ["FUNCTIONS", "Annotating"]

#: Functions of one name that are shown, unless another number is asked for.
FUNCTIONS = 10
_MOST = 10_000
_NOT_OF_CODE = ("columns", "order", "kind", "taken", "symbol", "ip")


class Annotating(ABC):
    """The method of `Trace` that shows code with counts."""

    @abstractmethod
    def _to_view(self, *, redact: bool) -> AbstractContextManager[ViewTrace]:
        """A context that gives what pages are made of."""

    def annotate(
        self,
        name: str,
        *,
        source: bool = False,
        functions: int = FUNCTIONS,
        names: str = "short",
        redact: bool = False,
        **query: Unpack[Query],
    ) -> Annotation:
        """Show a function with exact counts of its instructions or source lines, branches and loops.

        Parameters
        ----------
        name : str
            A function, as `ptkit.decode.Query` takes it: ``"sum"``, ``"libc.so.6!malloc"``, a pattern
            (``"mem*"``), an address in a function (``"main+0x10"``).
        source : bool
            Show source lines, as they are on this machine now.
        functions : int
            Functions of that name, at most, those with most instructions.
        names : str
            ``"short"`` or ``"full"`` names of functions.
        redact : bool
            Without paths, source lines and disassembly.
        **query
            See `ptkit.decode.Query`: a thread, a time, a module, ... Not ``columns``, ``order``, ``kind``,
            ``taken``, ``symbol`` and ``ip``.

        Returns
        -------
        ptkit.Annotation
            A notebook and ``print`` show it; ``instructions``, ``lines`` and ``loops`` are tables, ``save``
            writes one HTML file.

        Raises
        ------
        ConfigError
            If the query chooses other rows than code has, or `source` is asked for with `redact`.
        SymbolError
            If there is no such function; the message has near names.
        DecodeError, OutOfMemoryError
            As for `branches`.

        Notes
        -----
        The trace is decoded twice, for blocks and for edges of this code alone; with an index, as far as the
        code ran. docs/annotate.md has the rules.

        Examples
        --------
        >>> import ptkit
        >>> trace = ptkit.record(["true"])
        >>> found = trace.annotate("malloc")
        >>> rows = found.instructions
        >>> int(rows["count"].sum()) == len(trace.instructions(symbol="malloc"))
        True
        """
        for one in _NOT_OF_CODE:
            if query.get(one) is not None:
                raise ConfigError(f"{one}: annotated code is of all branches of one name; leave it out")
        if flag("source", source) and flag("redact", redact):
            raise ConfigError("source: redacted code has no source lines; leave out one of source and redact")
        check_choice("names", names, ("short", "full"))
        from ptkit.view.annotated.annotation import annotation_of

        with self._to_view(redact=redact) as trace:
            return annotation_of(
                trace,
                name,
                query,
                has_source=source,
                short=names == "short",
                most=integer("functions", functions, 1, _MOST),
            )
