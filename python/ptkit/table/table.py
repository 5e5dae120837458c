"""The result of every question: named columns of equal length."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ptkit import _core
from ptkit.errors import ConfigError
from ptkit.support.arguments import integer
from ptkit.support.schema import schema_of
from ptkit.table.columns import Columns
from ptkit.table.context import TableContext
from ptkit.table.derived import derived_of, full_name
from ptkit.table.forms import TableForms
from ptkit.table.pickled import kept_columns, packed, unpacked
from ptkit.table.runs import Runs

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["Table", "concatenate"]

_MOST_ROWS = 2**48


class Table(TableForms):
    """Named columns of equal length, in memory that the core filled.

    ``table["from_ip"]`` is a read-only NumPy array, ``len(table)`` the number of rows, ``table[10:20]`` and
    ``table[mask]`` are tables. Iteration is by column name; there is no object per row. A column of an
    enumeration compares with names: ``table[table["kind"] == "CALL"]``.

    Besides the stored columns there are columns made on access: ``stream`` (uint32), ``cpu``, ``pid``,
    ``tid`` (int32), ``space`` (uint32; all kept as runs), one bool column per bit of ``flags`` (``taken``,
    ``to_known``, ...), ``time_ns`` (int64, nanoseconds) where the trace knows its clock, and names of
    addresses: ``symbol`` and ``module`` of ``ip``, ``from_symbol``, ``from_module``, ``to_symbol`` and
    ``to_module`` of ``from_ip`` and ``to_ip`` (object: str or None), with the offset in what is named in
    ``symbol_offset`` and so on (uint64, bytes). Names of functions are short, without template arguments and
    parameters: ``symbol_full`` and so on have them in full. Each row is named in its own address space and at
    its own time. All are of shape (rows,); `dtypes`, `units` and `column` say what each is, docs/tables.md
    has them all.

    Attributes
    ----------
    data : Columns
        Columns that were read, also those that are not shown; provisional, as `ptkit.decode` is.
    errors, gaps : Table or None
        Rows of the errors and gaps tables that came up while this table was read; what is cut out of it
        keeps them whole.

    Raises
    ------
    ColumnError
        By ``table[name]``: there is no such column, or it was not asked for.
    ConfigError
        By ``table[index]``: it is none of these, or a mask of another length than the table.
    OutOfMemoryError
        By ``table[mask]`` and by columns that are made on access: they take more memory than is free.

    Notes
    -----
    ``time_ns`` is perf's conversion (the kernel's tools/perf/util/tsc.c) of ``tsc``, the earliest possible
    time: docs/time.md. ``time_ns_estimate`` is that of ``tsc_estimate``.
    """

    errors: Table | None
    gaps: Table | None

    def where(self, **conditions: Any) -> Self:
        """Select rows by values of columns: ``table.where(kind="COND", stream=[0, 2])``.

        Parameters
        ----------
        **conditions
            By column: a value, or any sequence, set, range or array of values. Enumerations go by name (in
            any case), member or number. Functions go by their short or full name. None selects rows without
            a name, in columns of names.

        Returns
        -------
        Table
            A copy of the rows that meet all conditions.

        Raises
        ------
        ColumnError
            If there is no such column, or it was not asked for.
        ConfigError
            If a value is of a type that the column cannot have.
        """
        from ptkit.table.conditions import matching

        mask = np.ones(self.data.rows, dtype=np.bool_)
        for name, wanted in conditions.items():
            column = self.column(name)
            values = self._derived_values(name) if column.role == "derived" else self[name]
            chosen = matching(values, column, wanted)
            if full_name(name) in derived_of(self.name):  # what is printed in a pipe
                chosen |= matching(self._derived_values(full_name(name)), column, wanted)
            mask &= chosen
        return self[mask]

    def head(self, count: int = 5) -> Self:
        """The first rows.

        Parameters
        ----------
        count : int
            How many at most.
        """
        return self[: integer("count", count, 0, _MOST_ROWS)]

    def sort(self, *columns: str, descending: bool | Sequence[bool] = False) -> Self:
        """Sort rows by one or several columns.

        Parameters
        ----------
        *columns : str
            One or several of `available`: rows that are equal in the first one are ordered by the second one,
            and so on.
        descending : bool or sequence of bool
            Largest first: for all columns, or for each.

        Returns
        -------
        Table
            A copy. Rows that are equal in all columns keep their order. Rows of which a value is not known
            come last. Enumerations are ordered by number, as `docs/tables.md` lists them.

        Raises
        ------
        ColumnError
            If there is no such column, or it was not asked for.
        ConfigError
            If no column is given, or `descending` has not one value for each.
        OutOfMemoryError
            If the copy takes more memory than is free.

        Examples
        --------
        >>> import ptkit
        >>> functions = ptkit.record(["true"]).functions()
        >>> slowest = functions.sort("p99", descending=True).head(10)
        >>> by_file = functions.sort("module", "self_instructions", descending=[False, True])
        """
        from ptkit.table.order import order_of

        return self[order_of(self, columns, descending)]

    def nlargest(self, count: int, columns: str | Sequence[str]) -> Self:
        """The rows with the largest values, largest first: the same as `sort` and `head`.

        Parameters
        ----------
        count : int
            How many at most.
        columns : str or sequence of str
            As for `sort`.

        Raises
        ------
        ColumnError, ConfigError, OutOfMemoryError
            As for `sort`.

        Examples
        --------
        >>> import ptkit
        >>> edges = ptkit.record(["true"]).edges()
        >>> bool(edges.nlargest(1, "count")["count"][0] == edges["count"].max())
        True
        """
        from ptkit.table.order import order_of

        count = integer("count", count, 0, _MOST_ROWS)
        names = (columns,) if isinstance(columns, str) else tuple(columns)
        return self[order_of(self, names, True)[:count]]

    # Copies.

    def __copy__(self) -> Self:
        return self._rows_of(slice(None), self.errors, self.gaps)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        errors, gaps = deepcopy(self.errors, memo), deepcopy(self.gaps, memo)
        return self._part(self.data.copied(), self._columns, errors, gaps)

    def __reduce__(self) -> tuple[Any, ...]:
        data = self.data
        made, kept = kept_columns(self)
        shown = {"flags", *self._columns} & set(data.arrays) - set(made)
        arrays = {name: data.arrays[name] for name in data.arrays if name in shown} | made
        return _unpickled, (
            type(self),
            self.name,
            data.rows,
            {name: packed(values) for name, values in arrays.items()},
            data.runs,
            self._columns,
            data.context.without_trace(kept),
            self.errors,
            self.gaps,
        )


def _unpickled(
    kind: type[Table],
    name: str,
    rows: int,
    arrays: Mapping[str, Any],
    runs: Runs | None,
    columns: Sequence[str],
    context: TableContext,
    errors: Table | None,
    gaps: Table | None,
) -> Table:
    stored = {name: unpacked(values) for name, values in arrays.items()}
    data = Columns(schema_of(name), rows, stored, runs, context)
    return kind(data, columns=columns, errors=errors, gaps=gaps)


def concatenate(tables: Sequence[Table]) -> Table:
    """Concatenate tables of the same columns, with their errors and gaps."""
    if not tables:
        raise ConfigError("nothing to concatenate")
    first = tables[0]
    if len(tables) == 1:
        return first
    # Parts of one table have the same sides: they count once.
    errors = list({id(part.errors): part.errors for part in tables if part.errors is not None}.values())
    gaps = list({id(part.gaps): part.gaps for part in tables if part.gaps is not None}.values())
    return Table(
        Columns.concatenate([part.data for part in tables]),
        columns=first.columns,
        errors=concatenate(errors) if errors else None,
        gaps=concatenate(gaps) if gaps else None,
    )


def from_core(
    name: str,
    result: tuple[int, Mapping[str, NDArray[Any] | _core.RunColumn], dict[str, NDArray[Any]]],
    *,
    columns: Sequence[str] | None = None,
    context: TableContext | None = None,
    errors: Table | None = None,
    gaps: Table | None = None,
) -> Table:
    """Make a table of what the core returned."""
    rows, arrays, runs = result
    schema = schema_of(name)
    kept = Runs(rows, runs) if schema.names("run") else None
    data = Columns(schema, rows, arrays, kept, context)
    return Table(data, columns=columns, errors=errors, gaps=gaps)
