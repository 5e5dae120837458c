"""Slow calls of a function against fast ones."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ptkit.decode import Query
from ptkit.decode.call_table import CallTable
from ptkit.decode.plan import check_choice
from ptkit.errors import ConfigError
from ptkit.support.arguments import integer
from ptkit.trace.calls import Calls
from ptkit.trace.parts import Parts

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ptkit.analysis.slow_calls import CallComparison, Choice
    from ptkit.table import Table
    from ptkit.trace.open_parts import OpenParts

_COLUMNS = (*CallTable.SUMMED, "end_how", "instruction", "end_instruction", "stream", "tid")
_MOST_SAMPLES = 2**20
_PARTIAL = ("time", "instructions", "ip", "symbol", "module")


class Comparing(Parts, Calls):
    """Methods of `Trace` about slow calls."""

    _open: OpenParts

    def compare(
        self,
        function: str,
        *,
        slow: Choice = 0.99,
        fast: Choice = 0.5,
        by: str = "instructions",
        sample: int = 1000,
        **query: Unpack[Query],
    ) -> CallComparison:
        """Compare slow calls of a function with fast ones: what did they do that those did not?

        Parameters
        ----------
        function : str
            Name of a function that was called, as `functions` has it (``"fib (app.py)"``), or what
            ``symbol=`` takes: a name without parameters or file, or a pattern that one such function matches.
        slow, fast : float, int, or array_like of bool
            Which calls are compared. A float is a share: ``slow=0.99`` takes the longest 1 % of the calls at
            most, but at least one; calls of the same length are left out if they would be more with them.
            ``fast=0.5`` takes those up to the median, and all that are as long as it. An integer is a limit
            in instructions or TSC ticks: at least so many are slow, at most so many are fast. A mask of shape
            (calls,) chooses among the calls in the order of `calls`, without those above another call of the
            function. No call is both: a slow one is not fast, and what takes no longer than fast calls is not
            in a share of slow ones.
        by : str
            ``"instructions"``, or ``"time"``: from begin to end, both at their earliest, in TSC ticks.
        sample : int
            So many slow and so many fast calls, evenly chosen, are looked at branch by branch, for lines and
            edges; all calls are for functions and times. 0: no lines and edges, and no second decode.
        **query
            See `ptkit.decode.Query`. Threads, processes, processors, spaces and streams select calls.

        Returns
        -------
        ptkit.CallComparison
            Functions, source lines, edges and times with what slow calls have more of, most first, each with
            a slow and a fast call as an example.

        Raises
        ------
        SymbolError
            If no such function was called; the message has near names.
        ConfigError
            If several functions match, no call is slow, or none is fast, or frames are selected by what they
            do not have.
        OutOfMemoryError
            As for `calls`.

        Notes
        -----
        Of recursion, the outermost calls are compared.

        Examples
        --------
        >>> import ptkit
        >>> trace = ptkit.record(["true"])
        >>> functions = trace.functions()
        >>> name = functions["function_full"][functions["count"].argmax()]
        >>> found = trace.compare(str(name))
        >>> found.functions[0].extra > 0
        True
        """
        if isinstance(function, Parts):
            raise ConfigError(
                "compare() compares slow calls of a function with fast ones; two runs are compared by "
                "ptkit.diff(a, b)"
            )
        if not isinstance(function, str):
            raise ConfigError(
                "compare() takes the name of a function, and compares its slow calls with its fast ones: "
                f'trace.compare("parse"), not {type(function).__name__}'
            )
        from ptkit.analysis.call_branches import BRANCH_COLUMNS  # takes a while
        from ptkit.analysis.slow_calls import compare_calls

        check_choice("by", by, ("instructions", "time"))
        sample = integer("sample", sample, 0, _MOST_SAMPLES)
        for name in (*_PARTIAL, "columns", "order"):
            if query.get(name) is not None:
                raise ConfigError(f"{name}: calls are compared with all that is above them; leave it out")
        threads = query.get("threads")
        query["columns"] = _COLUMNS
        calls = self.calls(**query)

        def branches(stream: int) -> Iterator[Table]:
            return self.iter_branches(columns=BRANCH_COLUMNS, stream=stream, threads=threads)

        return compare_calls(
            calls,
            calls.numbers_of(function, self._ranges_of(function)),
            slow=slow,
            fast=fast,
            by=by,
            sample=sample,
            branches=branches,
            name_ips=self._texts_of,
            name_lines=self._lines_of,
        )

    def _texts_of(self, ips: NDArray[np.uint64], spaces: NDArray[np.uint32]) -> list[str]:
        names = self._open.names.symbolize(ips, spaces)
        return [name or f"{ip:#x}" for name, ip in zip(names, ips.tolist(), strict=True)]

    def _lines_of(self, ips: NDArray[np.uint64], spaces: NDArray[np.uint32]) -> list[str | None]:
        found = self._open.names.lines(ips, spaces)
        return [
            None if file is None else f"{PurePath(file).name}:{line}"
            for file, line in zip(found.file, found.line.tolist(), strict=True)
        ]
