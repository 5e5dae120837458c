"""Arrow's IPC stream and Parquet: tables for DuckDB, Polars, pandas, Spark and others, by pyarrow."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ptkit.errors import ConfigError, UnsupportedError
from ptkit.export.files import NewFile, check_folder, new_folder
from ptkit.export.options import ALL
from ptkit.export.tables import Losses, chosen_columns, chosen_tables, empty_table, table_parts
from ptkit.support.schema import schema_of
from ptkit.support.text import shortened
from ptkit.table import Table

if TYPE_CHECKING:
    import pyarrow

__all__ = ["write_arrow", "write_parquet"]

# Rows of a part: a batch of Arrow, a row group of Parquet. DuckDB passes over row groups by the least and
# largest value of a column, and reads them on several threads: 122,880 is its own number.
_ROWS = 1 << 17
_AHEAD = 2  # row groups that wait to be written
_STREAM = "stream"
# Columns that grow, or nearly do: differences are shorter than codes of a dictionary.
_GROWING = (
    "end_offset", "end_time_ns", "end_tsc", "id", "instruction", "offset", "order", "time_ns", "tsc",
)  # fmt: skip


def _pyarrow(format: str) -> Any:
    try:
        import pyarrow
    except ImportError:
        raise UnsupportedError(
            f"format {format!r} needs pyarrow: pip install 'ptkit[arrow]'; csv needs no package"
        ) from None
    return pyarrow


def write_arrow(
    trace: Any,
    path: str,
    *,
    table: str = "branches",
    columns: Sequence[str] | None = None,
    names: str | None = None,
    **query: Any,
) -> dict[str, Any]:
    """Write a table as an IPC stream of Arrow: batches of rows, and dictionaries of names that grow.

    Parameters
    ----------
    trace : Trace
    path : str
        A file; an earlier one is replaced when the new one is complete.
    table, columns, names, **query
        As for `ptkit.export.csv_table.write_csv`.

    Raises
    ------
    UnsupportedError
        If pyarrow is missing.
    """
    arrow = _pyarrow("arrow")
    (chosen,) = chosen_tables(table)
    shown = chosen_columns(trace, chosen, columns, names)
    losses, texts = Losses(), _Dictionaries(arrow)
    with NewFile(path) as file:
        writer = None
        for part in _parts(trace, chosen, shown, query):
            batch = texts.unified(losses.of(part).to_arrow(list(shown)))
            if writer is None:
                writer = _stream_writer(arrow, file, batch.schema)
            writer.write_table(batch)
        assert writer is not None
        writer.close()
    return {"bytes": file.bytes, "notes": losses.notes()}


def _stream_writer(arrow: Any, file: NewFile, schema: Any) -> Any:
    from pyarrow import ipc

    # The schema's dictionaries are replaced where names are added: all readers know that.
    return ipc.new_stream(arrow.PythonFile(_Sink(file), mode="w"), schema)


class _Sink:
    """What pyarrow writes to: a file of ours, which pyarrow does not close."""

    closed = False

    def __init__(self, file: NewFile) -> None:
        self._file = file

    def write(self, data: Any) -> int:
        """Append bytes."""
        return self._file.write(data)

    def flush(self) -> None:
        """Do nothing: bytes are written at once."""

    def close(self) -> None:
        """Do nothing: the file is given its name when it is complete."""


class _Dictionaries:
    """One dictionary for each column of names, which grows with the parts, so that codes keep their name."""

    def __init__(self, arrow: Any) -> None:
        self._arrow = arrow
        self._codes: dict[str, dict[str, int]] = {}
        self._values: dict[str, Any] = {}

    def unified(self, part: pyarrow.Table) -> pyarrow.Table:
        """The same rows, with codes in the dictionaries of all parts until now."""
        for number, field in enumerate(part.schema):
            if not self._arrow.types.is_dictionary(field.type) or field.type.index_type != "int32":
                continue
            column = part.column(number)
            codes = self._codes.setdefault(field.name, {})
            count = len(codes)
            chunks = [self._recoded(chunk, codes) for chunk in column.chunks]
            if len(codes) > count or field.name not in self._values:
                self._values[field.name] = self._arrow.array(list(codes), field.type.value_type)
            values = self._values[field.name]
            arrays = [self._arrow.DictionaryArray.from_arrays(indices, values) for indices in chunks]
            new = self._arrow.chunked_array(arrays, type=field.type)
            part = part.set_column(number, field, new)
        return part

    def _recoded(self, chunk: Any, codes: dict[str, int]) -> Any:
        names = chunk.dictionary.to_pylist()
        new = np.array([codes.setdefault(name, len(codes)) for name in names] or [0], np.int32)
        known = np.asarray(chunk.is_valid())
        old = np.where(known, np.asarray(chunk.indices.fill_null(0)), 0)
        return self._arrow.array(new[old], mask=None if known.all() else ~known)


def write_parquet(
    trace: Any,
    path: str,
    *,
    table: str = "branches",
    columns: Sequence[str] | None = None,
    names: str | None = None,
    **query: Any,
) -> dict[str, Any]:
    """Write a table, or all, as a dataset of Parquet: ``PATH/stream=0/part-0.parquet``, ...

    Parameters
    ----------
    trace : Trace
    path : str
        A folder; an earlier dataset is replaced when the new one is complete.
    table : str
        As for `ptkit.export.csv_table.write_csv`, or ``"all"``: a folder in `path` for each table.
    columns, names, **query
        As for `ptkit.export.csv_table.write_csv`; with all tables, all columns.

    Raises
    ------
    UnsupportedError
        If pyarrow is missing.
    ConfigError
        If the folder exists and has files that are no part of a dataset.
    """
    _pyarrow("parquet")
    tables = chosen_tables(table, several=True)
    if table == ALL:
        _check_all(columns, query)
    target = Path(path)
    _check_dataset(target)
    losses = Losses()
    with new_folder(path) as made:
        for one in tables:
            shown = chosen_columns(trace, one, columns, names)
            selected = {} if one == "mappings" and table == ALL else query
            counted = losses if one == tables[0] else Losses()
            with _Dataset(made / one if table == ALL else made, one, shown) as dataset:
                for part in _parts(trace, one, shown, selected):
                    dataset.add(counted.of(part))
        total = sum(file.stat().st_size for file in made.rglob("*") if file.is_file())
    return {"bytes": total, "notes": losses.notes()}


def _check_all(columns: Sequence[str] | None, query: dict[str, Any]) -> None:
    if columns is not None:
        raise ConfigError("columns: those of one table; choose it (--table NAME)")
    if query.get("kind") is not None:
        raise ConfigError("kind: selects rows of one table; choose it (--table NAME)")


def _check_dataset(target: Path) -> None:
    """Refuse to replace what is no dataset of Parquet."""
    if not check_folder(target):
        return
    for folder, _, files in os.walk(target):
        for name in files:
            if not name.startswith("part-") or not name.endswith(".parquet"):
                other = (Path(folder) / name).relative_to(target)
                raise ConfigError(
                    f"{target}: has files that are no part of a dataset of Parquet, such as "
                    f"{shortened(str(other))}; give the name of a new folder"
                )


def _parts(trace: Any, table: str, columns: Sequence[str], query: dict[str, Any]) -> Iterator[Table]:
    """Parts of a table; one without rows, if it has none."""
    some = False
    for part in table_parts(trace, table, columns, query, _ROWS):
        some = True
        yield part
    if not some:
        yield empty_table(trace, table, columns, query)


class _Dataset:
    """Writes one table: a folder for each stream, with a file of row groups; tables without streams: a file.

    The column of a stream is the name of its folder, as Hive has it.
    """

    def __init__(self, folder: Path, table: str, columns: Sequence[str]) -> None:
        self._folder = folder
        self._is_partitioned = _STREAM in schema_of(table).names("run")
        self._columns = [name for name in columns if not (self._is_partitioned and name == _STREAM)]
        if not self._columns:
            raise ConfigError("columns: choose others besides stream, which is the name of a folder")
        self._stream: int | None = None
        self._writer: Any = None
        self._files = 0
        # pyarrow packs rows on one thread while the next ones are decoded on others.
        self._thread = ThreadPoolExecutor(1)
        self._pending: deque[Future[None]] = deque()

    def __enter__(self) -> _Dataset:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self._close()
        finally:
            self._thread.shutdown(cancel_futures=True)
            writer, self._writer = self._writer, None
            if writer is not None:
                with suppress(OSError):
                    writer.close()

    def add(self, part: Table) -> None:
        """Append rows: a row group, or one for each stream of them."""
        if not self._is_partitioned:
            self._append(part, None)
            return
        assert part.data.runs is not None
        streams, starts = part.data.runs.arrays[_STREAM], part.data.runs.arrays["row"]
        changes = np.flatnonzero(np.diff(streams.astype(np.int64), prepend=-1))
        if not len(changes):  # no rows: a file says the types of columns
            self._append(part, 0)
        for number, change in enumerate(changes.tolist()):
            last = number + 1 == len(changes)
            end = len(part) if last else int(starts[changes[number + 1]])
            rows = part if len(changes) == 1 else part[int(starts[change]) : end]
            self._append(rows, int(streams[change]))

    def _append(self, rows: Table, stream: int | None) -> None:
        if self._writer is None or stream != self._stream:
            self._close()
            self._open(rows, stream)
        if len(rows):
            packed = rows.to_arrow(self._columns)
            self._pending.append(self._thread.submit(self._writer.write_table, packed, row_group_size=_ROWS))
            self._wait(_AHEAD)

    def _wait(self, most: int) -> None:
        """Let so many row groups be written later."""
        while len(self._pending) > most:
            self._pending.popleft().result()

    def _open(self, rows: Table, stream: int | None) -> None:
        from pyarrow import parquet

        folder = self._folder if stream is None else self._folder / f"{_STREAM}={stream}"
        folder.mkdir(parents=True, exist_ok=True)
        growing = [name for name in self._columns if name in _GROWING]
        self._writer = parquet.ParquetWriter(
            folder / f"part-{self._files}.parquet",
            rows[:0].to_arrow(self._columns).schema,
            compression="zstd",
            compression_level=1,
            use_dictionary=[name for name in self._columns if name not in growing],
            column_encoding=dict.fromkeys(growing, "DELTA_BINARY_PACKED"),
        )
        self._files += 1
        self._stream = stream

    def _close(self) -> None:
        self._wait(0)
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.close()
