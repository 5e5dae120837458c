"""Tables for a notebook."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from ptkit.support.text import fitted, one_line

__all__ = ["Cell", "html_table"]

_MOST_SHOWN = 60


@dataclass(frozen=True)
class Cell:
    """A cell, or the head of a column.

    Attributes
    ----------
    text : str
        Text that is shown; long ones are cut.
    title : str
        Text that is shown in addition where the pointer is.
    unit : str
        Text below the head of a column.
    is_text : bool
        Texts are on the left, numbers on the right.
    """

    text: str
    title: str = ""
    unit: str = ""
    is_text: bool = False

    def html(self, tag: str) -> str:
        """The cell as an element of HTML."""
        text = one_line(self.text)
        shown = text if tag == "th" else fitted(text, _MOST_SHOWN)
        title = self.title or (text if shown != text else "")
        about = f' title="{escape(one_line(title))}"' if title else ""
        unit = f'<br><span style="font-weight:normal">{escape(self.unit)}</span>' if self.unit else ""
        side = "left" if self.is_text else "right"
        return f'<{tag}{about} style="text-align:{side}">{escape(shown)}{unit}</{tag}>'


def html_table(
    header: Sequence[Cell], rows: Sequence[Sequence[Cell]], footer: str = "", *, cut: int | None = None
) -> str:
    """Build a table; `cut`: after how many rows some are left out."""

    def line(cells: Sequence[Cell], tag: str) -> str:
        return "<tr>" + "".join(cell.html(tag) for cell in cells) + "</tr>"

    body = [line(row, "td") for row in rows]
    if cut is not None:
        body.insert(cut, line([Cell("...")] * len(header), "td"))
    end = f"<p>{escape(one_line(footer))}</p>" if footer else ""
    return (
        f'<table class="ptkit"><thead>{line(header, "th")}</thead><tbody>{"".join(body)}</tbody></table>{end}'
    )
