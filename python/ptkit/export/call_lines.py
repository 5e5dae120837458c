"""Source lines of functions and of calls, for profiles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ptkit.export.contexts import Contexts
from ptkit.export.frame_rows import ProfileTrace, has_source

__all__ = ["CallLines", "FunctionLine"]

_UNKNOWN = ("", 0)


@dataclass(frozen=True)
class FunctionLine:
    """Where a function begins in source code.

    Attributes
    ----------
    path : str
        Path of the source file; empty: not known.
    line : int
        Line; 0: not known.
    """

    path: str
    line: int


class CallLines:
    """Lines at which functions begin and call, each looked up once.

    Parameters
    ----------
    trace : Trace
    contexts : Contexts
    """

    def __init__(self, trace: ProfileTrace, contexts: Contexts) -> None:
        self._trace = trace
        self._has_source = has_source(trace)
        self._functions = contexts.functions
        self._chains: dict[tuple[int, int], list[Any]] = {}  # as `ptkit.Trace.inlines` has them
        begins = [self._begin(number) for number in range(len(contexts.functions))]
        # The first instruction of an inlined call may be of any line of the function.
        called = [begins[one] for one in self._functions.called]
        self.functions = [
            of_called if of_called.path == own.path else own
            for own, of_called in zip(begins, called, strict=True)
        ]

    def call(self, caller: int, site: int, space: int) -> int:
        """Line of a function at which a call stands, 0 if it is not known.

        Parameters
        ----------
        caller : int
            Number of the function that calls.
        site, space : int
            Address of the call, and its address space.
        """
        return self._line_in(caller, self._chain(site, space))[1]

    def _begin(self, number: int) -> FunctionLine:
        functions = self._functions
        if not functions.entry_known[number]:
            return FunctionLine(*_UNKNOWN)
        chain = self._chain(int(functions.entry[number]), int(functions.space[number]))
        return FunctionLine(*self._line_in(number, chain))

    def _chain(self, ip: int, space: int) -> list[Any]:
        if not self._has_source:
            return []
        key = ip, space
        found = self._chains.get(key)
        if found is None:
            found = self._chains[key] = self._trace.inlines(ip, space=space)
        return found

    def _line_in(self, number: int, chain: list[Any]) -> tuple[str, int]:
        """Path and line of the part of a chain of inlined functions that is of a function."""
        if not chain:
            return _UNKNOWN
        frame = chain[-1]
        if self._functions.inlined[number]:
            name = self._functions.original[number]
            frame = next((one for one in chain[:-1] if one.function == name), frame)
        return frame.file or "", frame.line
