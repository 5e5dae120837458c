"""Pictures of tables by matplotlib, which is imported for them only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ptkit.errors import ConfigError, UnsupportedError
from ptkit.support.arguments import integer
from ptkit.support.text import counted, fitted, one_line
from ptkit.table.derived import full_name
from ptkit.table.distinct_names import distinct_names
from ptkit.table.order import order_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ptkit.table.base import BaseTable

__all__ = ["OTHERS", "PALETTE", "new_axes", "plot_functions"]

#: Okabe and Ito's colours, which colour-blind people can distinguish.
PALETTE = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00")
#: The colour of everything else.
OTHERS = "#AAAAAA"

_MOST_BARS = 1000
_MOST_NAME = 48
_SMALL = 7  # points


def new_axes(ax: Axes | None, size: tuple[float, float]) -> Axes:
    """Return axes without frame at the top and on the right: those that are given, or those of a new figure.

    Raises
    ------
    UnsupportedError
        If matplotlib is missing.
    """
    try:
        from matplotlib import pyplot
    except ImportError:
        raise UnsupportedError(
            "plot: pictures are drawn by matplotlib, which is not installed: pip install ptkit[plot]"
        ) from None
    axes: Any = pyplot.subplots(figsize=size, layout="constrained")[1] if ax is None else ax
    axes.spines[["top", "right"]].set_visible(False)
    found: Axes = axes
    return found


def plot_functions(table: BaseTable, ax: Axes | None, count: int) -> Axes:
    """Draw the functions with most instructions of their own as bars; see `Table.plot`."""
    count = integer("count", count, 1, _MOST_BARS)
    if table.name != "functions":
        raise ConfigError(
            f"plot: {table.name} have no picture: trace.functions().plot() and trace.plot() draw"
        )
    names = next((name for name in ("function", "module") if name in table), None)
    if names is None or "self_instructions" not in table:
        raise ConfigError("plot: the table lacks the columns function and self_instructions: ask for them")
    shown = table[order_of(table, ("self_instructions",), True)[:count]]
    total = max(int(np.asarray(table["self_instructions"]).sum()), 1)
    shares = 100 * np.asarray(shown["self_instructions"]) / total
    axes: Any = new_axes(ax, (8, 1 + 0.22 * max(len(shown), 4)))
    bars = np.arange(len(shown))
    axes.barh(bars, shares, color=PALETTE[2])
    calls = shown["count"].tolist() if "count" in shown and names == "function" else None
    for bar, share in enumerate(shares.tolist()):
        text = f" {share:.1f} %" + (f", {counted(calls[bar], 'call')}" if calls is not None else "")
        axes.text(share, bar, text, va="center", fontsize=_SMALL)
    axes.set_yticks(
        bars, [_label(name) for name in _names(shown, names)], family="monospace", fontsize=_SMALL
    )
    axes.invert_yaxis()
    axes.margins(x=0.25)
    axes.set(xlabel="% of the instructions of all rows")
    noun = "files" if names == "module" else "functions"
    axes.set_title(f"Hottest {noun}, without what they call", loc="left", weight="bold", fontsize=10)
    found: Axes = axes
    return found


def _names(shown: BaseTable, column: str) -> list[str | None]:
    """Names, with what tells functions with equal short names apart."""
    if column != "function" or not shown._can_make(full_name(column)):
        return list(shown.named(column))
    full = shown.named(full_name(column))
    apart = distinct_names(full)
    return [name and apart[name] for name in full]


def _label(name: str | None) -> str:
    return "no file" if name is None else fitted(one_line(name), _MOST_NAME).replace("$", r"\$")
