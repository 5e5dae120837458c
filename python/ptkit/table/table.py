"""The result of every question: named columns of equal length."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import NDArray

from ptkit import _core
from ptkit.errors import ColumnError, ConfigError
from ptkit.support import memory
from ptkit.support.arguments import integer
from ptkit.support.schema import Column, TableSchema, schema_of
from ptkit.table.cells import is_uniform, join, read_only, where_set
from ptkit.table.column_array import column_array
from ptkit.table.context import TableContext
from ptkit.table.derived import Derived, derived_of, full_name, other_form
from ptkit.table.forms import TableForms
from ptkit.table.labels import Labels
from ptkit.table.late import Arrays
from ptkit.table.pickled import from_arrays, kept_columns, packed, unpacked
from ptkit.table.runs import Runs

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["Table", "concatenate"]

_MOST_ROWS = 2**48
_INDEX_BYTES = 16  # for each row that is copied, while its run is looked up


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

    def __init__(
        self,
        schema: TableSchema,
        rows: int,
        arrays: Mapping[str, NDArray[Any] | _core.RunColumn],
        runs: Runs | None,
        *,
        columns: Sequence[str] | None = None,
        context: TableContext | None = None,
        errors: Table | None = None,
        gaps: Table | None = None,
    ) -> None:
        self._schema = schema
        self._rows = rows
        # isinstance() of a Mapping takes as long as the rest.
        self._arrays = arrays if type(arrays) is Arrays else Arrays(arrays)
        self._runs = runs
        self._columns = tuple(columns) if columns is not None else tuple(self._arrays)
        self._context = context or TableContext()
        self.errors = errors
        self.gaps = gaps

    # Shape and names.

    @property
    def name(self) -> str:
        """Name of the table: ``"branches"``, ``"packets"``, ..."""
        return self._schema.name

    def __len__(self) -> int:
        return self._rows

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._find(name) is not None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that were asked for: the stored ones by default."""
        return self._columns

    @property
    def available(self) -> tuple[str, ...]:
        """Every name that ``table[name]`` takes."""
        names = dict.fromkeys(self._columns)
        if self._runs is not None:
            names.update(dict.fromkeys(self._schema.names("run", "run flag")))
        if "flags" in self._columns:
            names.update(dict.fromkeys(self._schema.names("flag")))
        for name in derived_of(self.name):
            derived = self._derived(name)
            assert derived is not None
            has_other = other_form(name) in self._columns and self._can_make(name)
            if has_other or (derived.offered(self._context) and names.keys() >= set(derived.needs)):
                names[name] = None
        return tuple(names)

    def column(self, name: str) -> Column:
        """Dtype, unit and meaning of a column.

        Parameters
        ----------
        name : str
            One of `available`.

        Raises
        ------
        ColumnError
            If there is none, or it was not asked for.
        """
        column = self._find(name)
        if column is None:
            raise self._no_column(name)
        return column

    def _find(self, name: str) -> Column | None:
        """The column of this name if it is one of `available`, without a list of them all."""
        column = self._schema.columns.get(name)
        if column is None:
            derived = self._derived(name)
            return derived.column if derived is not None and self._offers(name, derived) else None
        if column.role in ("run", "run flag"):
            there = self._runs is not None or name in self._columns
        else:
            there = name in self._columns or (column.role == "flag" and "flags" in self._columns)
        return column if there else None

    def _offers(self, name: str, derived: Derived) -> bool:
        if name in self._columns or (other_form(name) in self._columns and self._can_make(name)):
            return True
        return derived.offered(self._context) and all(need in self for need in derived.needs)

    @property
    def dtypes(self) -> dict[str, np.dtype[np.generic]]:
        """NumPy dtype by column."""
        return {name: self.column(name).dtype for name in self._columns}

    @property
    def units(self) -> dict[str, str]:
        """Unit by column: ``"address"``, ``"bytes"``, ``"TSC ticks"``, an enumeration's name, or empty."""
        return {name: self.column(name).unit for name in self._columns}

    def _no_column(self, name: str) -> ColumnError:
        from difflib import get_close_matches

        derived = self._derived(name)
        if name in self._schema.columns or (derived is not None and derived.offered(self._context)):
            return ColumnError(f"column {name!r} of {self.name} was not asked for: add it to columns=[...]")
        near = get_close_matches(name, self.available)
        hint = (
            f"; did you mean {' or '.join(map(repr, near))}?"
            if near
            else f"; there are {', '.join(self.available)}"
        )
        return ColumnError(f"{self.name} has no column {name!r}{hint}")

    # Columns and parts.

    @overload
    def __getitem__(self, key: str) -> NDArray[Any]: ...
    @overload
    def __getitem__(
        self, key: slice | NDArray[Any] | Sequence[int] | list[str] | tuple[str, ...]
    ) -> Self: ...

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            column = self.column(key)
            return column_array(self._values(column), key, column.enum)
        if isinstance(key, (int, np.integer)):
            raise TypeError("a table has no row objects: write table['column'][i], or table[i:i+1]")
        if isinstance(key, (list, tuple)) and key and all(isinstance(name, str) for name in key):
            return self._with_columns(key)
        index = self._checked_index(key)
        if isinstance(index, np.ndarray):
            self._ask_copy(index)
        return self._rows_of(index, self.errors, self.gaps)

    def _ask_copy(self, index: NDArray[Any]) -> None:
        rows = int(np.count_nonzero(index)) if index.dtype == np.bool_ else len(index)
        self._ask(f"a copy of {rows:,} rows", rows * (self._arrays.copied_row_bytes() + _INDEX_BYTES))

    def _checked_index(self, key: Any) -> slice | NDArray[Any]:
        if isinstance(key, slice):
            return key
        index = np.asarray(key)
        if index.ndim != 1 or (len(index) and index.dtype.kind not in "biu"):
            raise ConfigError(
                f"table[{key!r}]: give a column's name, a list of names, a slice, a mask or row numbers"
            )
        if index.dtype == np.bool_ and len(index) != self._rows:
            raise ConfigError(f"a mask of {len(index)} does not fit a table of {self._rows} rows")
        return index if len(index) else slice(0, 0)

    def _with_columns(self, names: Sequence[str]) -> Self:
        for name in names:
            self.column(name)
        return self._part(
            self._rows,
            self._arrays,
            self._runs,
            columns=tuple(dict.fromkeys(names)),
            errors=self.errors,
            gaps=self.gaps,
        )

    def _part(
        self,
        rows: int,
        arrays: Mapping[str, NDArray[Any] | _core.RunColumn],
        runs: Runs | None,
        *,
        columns: Sequence[str],
        errors: Table | None,
        gaps: Table | None,
    ) -> Self:
        """Make a table of some of the rows or columns."""
        return type(self)(
            self._schema,
            rows,
            arrays,
            runs,
            columns=columns,
            context=self._context,
            errors=errors,
            gaps=gaps,
        )

    def _rows_of(
        self, index: slice | NDArray[Any], errors: Table | None = None, gaps: Table | None = None
    ) -> Self:
        runs = None if self._runs is None else self._runs.take(index)
        rows = (
            len(range(*index.indices(self._rows)))
            if isinstance(index, slice)
            else int(np.count_nonzero(index))
            if index.dtype == np.bool_
            else len(index)
        )
        return self._part(
            rows, self._arrays.take(index, rows), runs, columns=self._columns, errors=errors, gaps=gaps
        )

    def _ask(self, what: str, size: int) -> None:
        """Raise OutOfMemoryError if so many bytes are not free."""
        memory.ask(f"{self.name}: {what}", size, f"read parts: iter_{self.name}()")

    def _values(self, column: Column) -> NDArray[Any]:
        name = column.name
        if not self._is_free(column):
            self._ask(f"column {name!r} of {self._rows:,} rows", self._rows * column.dtype.itemsize)
        if column.role in ("stored", "on demand"):
            return self._arrays[name]
        if column.role == "derived":
            values = self._derived_values(name)
            return read_only(values.texts() if isinstance(values, Labels) else values)
        if column.role == "flag":
            return read_only(where_set(self._arrays["flags"], column.mask))
        assert self._runs is not None
        if column.role == "run":
            return read_only(self._runs.spread(name))
        return read_only(where_set(self._runs.spread("flags"), column.mask))

    def _is_free(self, column: Column) -> bool:
        """Whether a column takes no memory for each row, as it is there, or as all rows have one value."""
        name, role = column.name, column.role
        if role in ("stored", "on demand"):
            return self._arrays.is_made(name)
        if role == "flag":
            return is_uniform(self._arrays["flags"])
        if role in ("run", "run flag") and self._runs is not None:
            return self._runs.is_uniform(name if role == "run" else "flags")
        return False

    @property
    def nbytes(self) -> int:
        """Bytes of memory that the table holds.

        A column that has one value in all rows takes that of one value. ``offset`` takes that of its runs,
        one for each packet, until it is asked for.
        """
        runs = 0 if self._runs is None else sum(array.nbytes for array in self._runs.arrays.values())
        return runs + self._arrays.nbytes

    def _has_read(self, names: Sequence[str]) -> bool:
        """Whether all of these columns are there, shown or not."""
        runs = () if self._runs is None else self._schema.names("run")
        return all(name in self._arrays or name in runs for name in names)

    def _derived(self, name: str) -> Derived | None:
        found = derived_of(self.name).get(name)
        return found if found is None or name not in self._context.kept else from_arrays(found)

    def _derived_values(self, name: str) -> NDArray[Any] | Labels:
        """Make a derived column that is available."""
        derived = self._derived(name)
        assert derived is not None
        return derived.values(self)

    def _can_make(self, name: str) -> bool:
        """Whether a derived column can be made, available or not."""
        derived = self._derived(name)
        if derived is None or not derived.offered(self._context):
            return False
        return name in self._context.kept or self._has_read(derived.needs)

    def known(self, name: str) -> NDArray[np.bool_] | None:
        """Which values of a column mean something.

        Parameters
        ----------
        name : str
            One of `available`.

        Returns
        -------
        numpy.ndarray of bool, shape (rows,), or None
            None: all of them, or the column ``flags`` was not asked for.
        """
        derived = self._derived(name)
        if derived is not None:
            return derived.known(self)
        flag = self._schema.validity.get(name)
        if flag is None:
            return None
        column = self._schema.columns[flag]
        if (
            column.role == "flag"
        ):  # the reader fills `flags` also where only a column that needs it was asked for
            return where_set(self._arrays["flags"], column.mask) if "flags" in self._arrays else None
        return None if self._runs is None else where_set(self._runs.spread("flags"), column.mask)

    def named(self, name: str) -> list[Any]:
        """A column as Python values: enumerations by name, None where a value is not known.

        Parameters
        ----------
        name : str
            One of `available`.

        Returns
        -------
        list
            One int, bool, str or None per row.

        Raises
        ------
        ColumnError
            If there is no such column, or it was not asked for.
        """
        values: list[Any] = self[name].tolist()
        enum = self.column(name).enum
        if enum is not None:
            names = {int(member): member.name for member in enum}
            values = [names.get(value, value) for value in values]
        known = self.known(name)
        if known is not None and not known.all():
            values = [value if ok else None for value, ok in zip(values, known.tolist(), strict=True)]
        return values

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

        mask = np.ones(self._rows, dtype=np.bool_)
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
        """The same rows in the order of one or several columns.

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
        return self._part(
            self._rows,
            self._arrays.copied(),
            None if self._runs is None else self._runs.copied(),
            columns=self._columns,
            errors=deepcopy(self.errors, memo),
            gaps=deepcopy(self.gaps, memo),
        )

    def __reduce__(self) -> tuple[Any, ...]:
        made, kept = kept_columns(self)
        shown = {"flags", *self._columns} & set(self._arrays) - set(made)
        arrays = {name: self._arrays[name] for name in self._arrays if name in shown} | made
        return _unpickled, (
            type(self),
            self.name,
            self._rows,
            {name: packed(values) for name, values in arrays.items()},
            self._runs,
            self._columns,
            self._context.without_trace(kept),
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
    columns_of_rows = {name: unpacked(stored) for name, stored in arrays.items()}
    return kind(
        schema_of(name),
        rows,
        columns_of_rows,
        runs,
        columns=columns,
        context=context,
        errors=errors,
        gaps=gaps,
    )


def concatenate(tables: Sequence[Table]) -> Table:
    """Concatenate tables of the same columns, with their errors and gaps."""
    if not tables:
        raise ConfigError("nothing to concatenate")
    first = tables[0]
    if len(tables) == 1:
        return first
    arrays = {name: join([part._arrays[name] for part in tables]) for name in first._arrays}
    runs = None
    if first._runs is not None:
        runs = Runs.concatenate([part._runs for part in tables if part._runs is not None])
    # Parts of one table have the same sides: they count once.
    errors = list({id(part.errors): part.errors for part in tables if part.errors is not None}.values())
    gaps = list({id(part.gaps): part.gaps for part in tables if part.gaps is not None}.values())
    return Table(
        first._schema,
        sum(len(part) for part in tables),
        arrays,
        runs,
        columns=first._columns,
        context=first._context,
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
    return Table(schema, rows, arrays, kept, columns=columns, context=context, errors=errors, gaps=gaps)
