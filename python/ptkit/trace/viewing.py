"""Pages of a trace and of its parts."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from copy import copy
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ptkit.decode.call_table import check_frames
from ptkit.decode.plan import check_choice
from ptkit.errors import ConfigError
from ptkit.export.timelines import AXES
from ptkit.support.arguments import flag
from ptkit.support.text import one_line
from ptkit.trace.annotating import Annotating
from ptkit.trace.exporting import PartExport, PartTrace, redacted

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ptkit.decode import Query
    from ptkit.trace.whole import WholeTrace
    from ptkit.view import Page, ViewTrace

__all__ = ["SIZE", "PartView", "Viewing", "page_of", "page_size", "whole_view"]

#: Bytes of a page, at most, unless another size is asked for.
SIZE = "20M"


class Viewing(Annotating):
    """The method of `Trace` that shows it as a page."""

    def _bound_query(self) -> dict[str, Any] | None:
        """What selects this part of a trace; None: no query does."""
        return {}

    def view(
        self,
        other: Viewing | None = None,
        *,
        of: str | None = None,
        size: int | str | None = SIZE,
        names: str = "short",
        frames: str = "native",
        inlines: bool = False,
        redact: bool = False,
        **query: Unpack[Query],
    ) -> Page:
        """Make a page that shows the whole run: a timeline of all calls, and functions with their code.

        A notebook shows it; ``view().open()`` opens a browser, ``view().save("page.html")`` writes it.

        Parameters
        ----------
        other : Trace, View or Slice, optional
            A second run, which is shown beside the first one.
        of : str, optional
            Positions: ``"time"``, or ``"instructions"`` of the thread in its stream. None: time, but
            instructions where times are emulated or not known.
        size : int or str, optional
            Bytes of the page, at most (``"4M"``). Of functions with least work, details are left out first;
            then short calls are merged with those next to them. None: as many as there are.
        names : str
            ``"short"`` or ``"full"`` names of functions; full ones are shown beside short ones.
        frames, inlines
            As for `calls`.
        redact : bool
            Without what `ptkit.redact` leaves out (paths, command lines, names of threads, source), and
            without disassembly.
        **query
            As for `calls`, of both runs.

        Returns
        -------
        ptkit.view.Page

        Raises
        ------
        ConfigError
            If the query chooses columns, an order, or rows that frames have not; there are no times; or
            nothing fits into `size`.
        SymbolError, OutOfMemoryError
            As for `call_timeline`.
        UnsupportedError
            If this ptkit was installed without its page.

        Notes
        -----
        Streams are decoded twice: for the timeline, and for the counts of code and of branches. Two runs are
        decoded once more, to find where they part, and by time again.
        docs/view.md has what the page shows, and what it embeds.

        Examples
        --------
        >>> import ptkit, tempfile
        >>> page = ptkit.record(["true"]).view()
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     page.save(f"{folder}/page.html") == page.bytes
        True
        """
        if other is not None and not isinstance(other, Viewing):
            raise ConfigError(f"other: give a Trace or a part of one, not {type(other).__name__}")
        runs = [(one, query) for one in (self, other) if one is not None]
        return page_of(runs, of=of, size=size, names=names, frames=frames, inlines=inlines, redact=redact)


def page_size(size: int | str | None) -> int:
    """Read the most bytes that a page may have; None: no limit."""
    from ptkit.capture.sizes import size_of

    most = 2**62
    return most if size is None else size_of("size", size, 1 << 16, most)


def page_of(
    runs: Sequence[tuple[Viewing, Query]],
    *,
    of: str | None,
    size: int | str | None,
    names: str,
    frames: str,
    inlines: bool,
    redact: bool,
) -> Page:
    """Make a page of one run or two, each with its selection; see `Viewing.view`."""
    from ptkit.view import make_document, read_run
    from ptkit.view.page import Page

    check_choice("names", names, ("short", "full"))
    if of is not None:
        check_choice("of", of, AXES)
    check_frames(frames, flag("inlines", inlines))
    most = page_size(size)
    with ExitStack() as stack:
        found = []
        for part, query in runs:
            trace = stack.enter_context(part._to_view(redact=flag("redact", redact)))
            how: dict[str, Any] = {"frames": frames, "inlines": inlines}
            found.append(read_run(trace, of=of, names=names, **how, bound=part._bound_query(), query=query))
        if len(found) == 2:
            from ptkit.analysis.diff import Run
            from ptkit.analysis.diff.difference import difference
            from ptkit.view.divergences import mark_divergences

            (a, _), (b, _) = runs
            compared = difference(Run.of(a), Run.of(b), (found[0].title(), found[1].title()), frames=frames)
            mark_divergences(compared, found)
        return Page(make_document(found, most))


class PartView(Viewing, PartExport):
    """Pages of `View` and `Slice`."""

    def _repr_html_(self) -> str:
        return f"<p>{escape(one_line(repr(self)))}</p>{self._trace.info._repr_html_()}"

    @contextmanager
    def _to_view(self, *, redact: bool) -> Iterator[ViewTrace]:
        if not redact:
            yield cast("ViewTrace", PartTrace(self))
            return
        with redacted(self._trace, _beside()) as trace:
            part = copy(self)
            part._trace = trace
            yield cast("ViewTrace", PartTrace(part))


@contextmanager
def whole_view(trace: WholeTrace, *, redact: bool) -> Iterator[ViewTrace]:
    """What pages of a whole trace are made of."""
    if not redact:
        yield cast("ViewTrace", trace)
        return
    with redacted(trace, _beside()) as copied:
        yield cast("ViewTrace", copied)


def _beside() -> str:
    """A path in the folder of temporary files."""
    return str(Path(tempfile.gettempdir()) / "page.html")
