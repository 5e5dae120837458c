"""A page with a whole run, as `Trace.view` returns it."""

from __future__ import annotations

from base64 import b64encode
from html import escape
from typing import TYPE_CHECKING

from ptkit.errors import UnsupportedError
from ptkit.export.files import NewFile, Written
from ptkit.support.arguments import integer
from ptkit.view.opening import open_in_browser, private_file
from ptkit.view.picture import svg_picture

if TYPE_CHECKING:
    from ptkit.view.document import Document
    from ptkit.view.widget import PageWidget

__all__ = ["Page"]

#: Pixels of a notebook's cell.
HEIGHT = 640
_MOST_HEIGHT = 10_000


class Page(Written):
    """A page that shows a whole run: one HTML file, which needs neither a server nor a network.

    A notebook shows it. Made by `Trace.view`.

    Attributes
    ----------
    bytes : int
        Size of the file.
    notes : tuple of str
        Sentences: losses, what was merged or left out, what the page embeds.
    """

    def __init__(self, document: Document) -> None:
        self._document = document
        self.bytes = document.bytes
        self.notes = tuple(document.notes)

    def __repr__(self) -> str:
        titles = " and ".join(repr(run.title()) for run in self._document.runs)
        return f"<ptkit.view.Page of {titles}: {self.bytes:,} bytes>"

    def write(self, file: NewFile) -> None:
        """Write the page to a file that is open."""
        for part in self._document.parts:
            file.write(part)

    def open(self) -> str:
        """Write the page to a private file in the user's temporary folder, and open it in a browser.

        Returns
        -------
        str
            Path of the file. No browser is started without a display, over SSH, and in CI.

        Raises
        ------
        OpenError
            If it cannot be written.
        """
        with private_file(self._document.runs[0].title()) as path:
            self.save(path)
        open_in_browser(path)
        return path

    def widget(self, *, height: int = HEIGHT) -> PageWidget:
        """Make a widget of the page, which says what is selected in it.

        Parameters
        ----------
        height : int
            Pixels of the cell.

        Returns
        -------
        ptkit.view.widget.PageWidget
            Its trait `selection`, and its methods `find`, `select` and `zoom`.

        Raises
        ------
        ConfigError
            If `height` is no positive number.
        UnsupportedError
            If anywidget is missing.

        Examples
        --------
        >>> import ptkit
        >>> widget = ptkit.record(["true"]).view().widget()
        >>> widget.selection["kind"] is None
        True
        >>> widget.find("main")
        """
        try:
            import anywidget  # noqa: F401
        except ImportError:
            raise UnsupportedError(
                "widget: it needs anywidget, which is not installed: pip install ptkit[widget]"
            ) from None
        from ptkit.view.widget import PageWidget

        return PageWidget(self._document, height=integer("height", height, 1, _MOST_HEIGHT))

    def _repr_html_(self) -> str:
        # Viewers that strip the frame show the picture behind it.
        text = b"".join(self._document.parts).decode()
        picture = b64encode(svg_picture(self._document.runs[0]).encode()).decode()
        title = escape(self._document.runs[0].title())
        return (
            f'<div style="position:relative;min-height:{HEIGHT}px">'
            f'<img alt="{title}" src="data:image/svg+xml;base64,{picture}" style="max-width:100%">'
            f'<iframe title="{title}" sandbox="allow-scripts" '
            'style="position:absolute;inset:0;width:100%;height:100%;border:0;background:#fff" '
            f'srcdoc="{escape(text)}"></iframe></div>'
        )
