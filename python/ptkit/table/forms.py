"""Other forms of a table: pandas, Polars and Arrow, text of a terminal, HTML of a notebook."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ptkit.table.base import BaseTable

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow
    from matplotlib.axes import Axes

__all__ = ["TableForms"]


class TableForms(BaseTable):
    """Conversions of `Table`, and how it is shown."""

    def messages(self) -> list[str]:
        """A line of text per row of an errors, gaps, events or packets table.

        Errors and gaps: what happened, where, and what to do. Events and packets: in the manner of
        libipt's ptxed and ptdump.

        Raises
        ------
        ConfigError
            If it is another table.
        ColumnError
            If a column that the text is made of was not asked for.
        OutOfMemoryError
            If the texts of so many rows take more memory than is free.
        """
        return self._messages()

    def _messages(self, *, rva: bool = False) -> list[str]:
        """Make `messages`; `rva`: with module and RVA of addresses."""
        from ptkit.table.messages import messages_of

        return messages_of(self, rva=rva)

    # Tables of other packages.

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[np.object_]:
        """One object per row, with the columns that `to_pandas` has as attributes.

        It is there for `pandas.DataFrame(table)`, which takes rows. `to_pandas` is faster, and keeps dtypes
        and the columns of a table without rows. Enumerations are names; what is not known is None, or
        pandas.NA where pandas is imported. A column, ``table["count"]``, is an array of numbers.

        Raises
        ------
        ConfigError
            If another dtype than object is asked for.
        """
        from ptkit.table.row_objects import row_objects

        return row_objects(self, dtype, copy)

    def to_pandas(
        self,
        columns: Sequence[str] | None = None,
        *,
        copy: bool = False,
        dtype_backend: str = "numpy_nullable",
    ) -> pandas.DataFrame:
        """View as a DataFrame of pandas that shares the table's memory.

        Parameters
        ----------
        columns : sequence of str, optional
            Any of `available`. By default `columns` of the table; if none were chosen of it, also the names
            of functions beside addresses: ``from_symbol``, ``entry_symbol`` and so on.
        copy : bool
            Copy all columns, so that the frame can be written. Without it, the frame's columns are read-only
            views: pandas raises ValueError where a value is assigned to a row.
        dtype_backend : str
            ``"numpy_nullable"``: columns of which values may be unknown are nullable integers, also where all
            are known. ``"pyarrow"``: all columns are of pandas.ArrowDtype.

        Returns
        -------
        pandas.DataFrame
            Enumerations and names are categoricals (with pyarrow: dictionaries).

        Raises
        ------
        ColumnError
            If there is no such column, or it was not asked for.
        ConfigError
            If `dtype_backend` is neither.
        OutOfMemoryError
            If masks, columns that are made on access, or copies take more memory than is free.
        """
        from ptkit.table.frames import to_pandas

        return to_pandas(self, columns, copy=copy, dtype_backend=dtype_backend)

    def to_polars(self, columns: Sequence[str] | None = None) -> polars.DataFrame:
        """View as a DataFrame of Polars; enumerations become polars.Enum, names polars.Categorical.

        Parameters
        ----------
        columns : sequence of str, optional
            Any of `available`. By default `columns` of the table; if none were chosen of it, also the names
            of functions beside addresses: ``from_symbol``, ``entry_symbol`` and so on.

        Returns
        -------
        polars.DataFrame
        """
        from ptkit.table.frames import to_polars

        return to_polars(self, columns)

    def to_arrow(self, columns: Sequence[str] | None = None) -> pyarrow.Table:
        """Share with pyarrow: enumerations and names as dictionaries of strings; what is not known is null.

        Parameters
        ----------
        columns : sequence of str, optional
            Any of `available`. By default `columns` of the table; if none were chosen of it, also the names
            of functions beside addresses: ``from_symbol``, ``entry_symbol`` and so on.

        Returns
        -------
        pyarrow.Table
        """
        from ptkit.table.convert import to_arrow

        return to_arrow(self, columns)

    def __arrow_c_schema__(self) -> Any:
        from ptkit.table.convert import arrow_capsules

        return arrow_capsules(self[:0], None)[0]

    def __arrow_c_array__(self, requested_schema: Any = None) -> tuple[Any, Any]:
        from ptkit.table.convert import arrow_capsules

        return arrow_capsules(self, None)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        from ptkit.table.convert import arrow_stream

        return arrow_stream(self, None)

    # In a picture, in a terminal and in a notebook.

    def plot(self, ax: Axes | None = None, *, count: int = 14) -> Axes:
        """Draw the functions with most instructions of their own, by matplotlib.

        Tables of functions have this picture, also by file (``by="module"``); `Trace.plot` draws a trace.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; by default in a new figure.
        count : int
            How many functions at most.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        UnsupportedError
            If matplotlib is missing.
        ConfigError
            If it is another table, or lacks the columns.

        Examples
        --------
        >>> import ptkit
        >>> ptkit.record(["true"]).functions().plot(count=5).get_title("left")
        'Hottest functions, without what they call'
        """
        from ptkit.table.plot import plot_functions

        return plot_functions(self, ax, count)

    def __repr__(self) -> str:
        from ptkit.table.show import as_text

        return as_text(self)

    def _repr_html_(self) -> str:
        from ptkit.table.show import as_html

        return as_html(self)
