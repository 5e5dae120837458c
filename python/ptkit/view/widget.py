"""A widget of notebooks that shows a page, as `Page.widget` returns it. It needs anywidget."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import traitlets
from anywidget import AnyWidget

from ptkit.errors import ConfigError, SymbolError
from ptkit.support.arguments import integer
from ptkit.view.columns import ROWS

if TYPE_CHECKING:
    from ptkit.view.document import Document
    from ptkit.view.run import Run

__all__ = ["PageWidget"]

_LAST = 2**64 - 1
# Types of what a page says; None stands for what a selection does not have.
_TYPES: dict[str, type] = {
    "kind": str,
    "run": int,
    "function": str,
    "symbol": str,
    "id": int,
    "calls": int,
    "tid": int,
    "by": str,
    "begin": int,
    "end": int,
    "command": str,
    "python": str,
}
_POSITIONS = ("begin", "end")
_KINDS = ("slice", "function", "range")


def _from_page(sent: Any, _: Any = None) -> dict[str, Any]:
    """Make a selection of what a page sent. Positions come as text: numbers of JavaScript have 53 bits."""
    found: dict[str, Any] = dict.fromkeys(_TYPES)
    if not isinstance(sent, Mapping) or sent.get("kind") not in _KINDS:
        return found
    for name, kind in _TYPES.items():
        value = sent.get(name)
        if name in _POSITIONS and isinstance(value, str) and value.isdecimal() and len(value) <= 20:
            value = int(value)
        if type(value) is kind:
            found[name] = value
    return found


def _to_page(selection: Mapping[str, Any], _: Any = None) -> dict[str, Any] | None:
    """What a page sends of a selection."""
    if selection["kind"] is None:
        return None
    texts = {name: str(selection[name]) for name in _POSITIONS if selection[name] is not None}
    return {**selection, **texts}


class PageWidget(AnyWidget):
    """A page in a notebook, which says what is selected in it. Made by `Page.widget`.

    A notebook that is saved with the state of its widgets has the whole page.

    Attributes
    ----------
    selection : dict
        What is selected, with these members; one that does not apply is None. `observe` calls a function
        when it changes.

        ``kind``
            ``"slice"`` (a call), ``"function"`` or ``"range"``. None: nothing is selected.
        ``run``
            0; of two runs, 0 or 1.
        ``function``, ``symbol``
            Full name of the function, and the name by which ``symbol=`` selects it alone.
        ``id``, ``calls``
            Number of the call in ``Trace.calls()``, and the number of calls in the slice. Where it is more
            than 1, calls are merged, and `id` is that of the longest one.
        ``tid``
            Thread of the slice, or of a range that is one thread's.
        ``begin``, ``end``, ``by``
            Positions of a slice or of a range. By ``"time"`` they are TSC ticks, as `Trace.between` takes
            them; by ``"instructions"``, instructions of the thread in its stream, as its ``instructions``.
        ``command``, ``python``
            The command and the Python line that the page shows for the selection. None: it shows none.
    height : int
        Pixels of the cell.
    title : str
        Name of the recording; of two, that of the first.
    """

    _esm = (files("ptkit.view") / "widget.js").read_text(encoding="utf-8")
    _page = traitlets.Bytes(read_only=True).tag(sync=True)
    # The last request of each kind, numbered from 1. A page that is shown performs those that no other did.
    _requests = traitlets.List(traitlets.Dict()).tag(sync=True)
    _performed = traitlets.Int(0).tag(sync=True)
    height = traitlets.Int().tag(sync=True)
    title = traitlets.Unicode(read_only=True).tag(sync=True)
    selection = traitlets.Dict(default_value=_from_page(None), read_only=True).tag(
        sync=True, from_json=_from_page, to_json=_to_page
    )

    def __init__(self, document: Document, *, height: int) -> None:
        super().__init__(height=height)
        self._runs = document.runs
        self._sent = 0
        self.set_trait("_page", b"".join(document.parts))
        self.set_trait("title", document.runs[0].title())

    def __repr__(self) -> str:
        return f"<ptkit.view.widget.PageWidget of {self.title!r}: {len(self._page):,} bytes>"

    def find(self, name: str) -> None:
        """Select the first call of a function, and zoom in to it.

        Parameters
        ----------
        name : str
            Its name, full name, or ``file!name``. Where no function has it, those match of which the name or
            the file has this text in it, as in the page's search.

        Raises
        ------
        SymbolError
            If none does.
        """
        if not any(_matches(run, name) for run in self._runs):
            raise SymbolError(f"no function of the page has {name!r} in its name")
        self._ask({"type": "find", "text": name})

    def select(self, id: int, *, run: int = 0) -> None:
        """Select a call, and zoom in to it.

        Parameters
        ----------
        id : int
            Its number, as column ``id`` of ``Trace.calls()`` has it.
        run : int
            0; of two runs, 0 or 1.

        Raises
        ------
        ConfigError
            If the page has no such call, or has it only as a part of merged ones.
        """
        run = self._run(run)
        id = integer("id", id, 0, _LAST)
        if not any((part["id"] == id).any() for part in self._runs[run].timeline.parts(ROWS)):
            raise ConfigError(
                f"id={id}: the page has no slice of this call; it is merged with others, left out, or no call"
            )
        self._ask({"type": "select", "selection": {"kind": "slice", "run": run, "id": id}})

    def zoom(self, begin: int, end: int, *, run: int = 0) -> None:
        """Show an interval. It selects nothing.

        Parameters
        ----------
        begin, end : int
            Positions, as `selection` has them.
        run : int
            0; of two runs, 0 or 1.

        Raises
        ------
        ConfigError
            If they are no positions, or `end` is not above `begin`.
        """
        run = self._run(run)
        begin = integer("begin", begin, 0, _LAST - 1)
        end = integer("end", end, begin + 1, _LAST)
        self._ask({"type": "zoom", "run": run, "begin": str(begin), "end": str(end)})

    def _run(self, run: int) -> int:
        return integer("run", run, 0, len(self._runs) - 1)

    def _ask(self, request: dict[str, Any]) -> None:
        self._sent += 1
        others = [one for one in self._requests if one["request"]["type"] != request["type"]]
        self._requests = [*others, {"number": self._sent, "request": request}]


def _matches(run: Run, text: str) -> bool:
    """Whether a function has this name, or has it as a part of its name or of its file's."""
    names = run.functions.names
    part = text.lower()
    return any(
        text == f"{module}!{full}" or any(part in one.lower() for one in (name, full, module or ""))
        for name, full, module in zip(names.names, names.full, names.modules, strict=True)
    )
