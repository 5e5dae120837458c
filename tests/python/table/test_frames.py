"""DataFrames of pandas and Polars: views, dtypes, and what is done with them."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import pytest

import ptkit
from ptkit.errors import ConfigError

NULLABLE = ("from_ip", "to_ip", "tsc", "tsc_error")


@pytest.fixture
def pandas() -> Any:
    return pytest.importorskip("pandas")


@pytest.fixture(scope="module")
def packets_table() -> Any:
    """Two packets, one with an IP."""
    return ptkit.packets(bytes.fromhex("711093388506f80000"))


def test_views_share_memory(pandas: Any, loop_trace: Any) -> None:
    table = loop_trace.branches()
    frame = table.to_pandas()
    assert np.shares_memory(frame["offset"].to_numpy(), table["offset"])
    assert np.shares_memory(frame["from_ip"].array._data, table["from_ip"])
    assert np.shares_memory(frame["kind"].array._codes, table["kind"])
    masks = [frame[name].array._mask for name in NULLABLE]
    assert all(np.shares_memory(masks[0], mask) for mask in masks), "nothing is unknown: one mask"


def test_dtypes_do_not_depend_on_the_data(pandas: Any, loop_trace: Any, packets_table: Any) -> None:
    known = loop_trace.packets()
    for one, other in (
        (known, packets_table),
        (known, known[:0]),
        (loop_trace.branches(), loop_trace.branches()[:0]),
    ):
        for backend in ("numpy_nullable", "pyarrow"):
            frames = [table.to_pandas(table.columns, dtype_backend=backend) for table in (one, other)]
            assert frames[0].dtypes.to_dict() == frames[1].dtypes.to_dict()


@pytest.mark.parametrize("backend", ["numpy_nullable", "pyarrow"])
def test_values(pandas: Any, backend: str, loop_trace: Any, packets_table: Any) -> None:
    if backend == "pyarrow":
        pytest.importorskip("pyarrow")
    columns = ["from_ip", "kind", "tsc", "tsc_source", "offset", "taken", "tid", "cpu", "stream"]
    for table in (loop_trace.branches(columns=columns), packets_table):
        for copy in (False, True):
            frame = table.to_pandas(copy=copy, dtype_backend=backend)
            assert list(frame.columns) == list(table.columns)
            for name in table.columns:
                found = [
                    None if value is pandas.NA or value != value else value for value in frame[name].tolist()
                ]
                assert found == table.named(name), name


def test_views_cannot_be_written(pandas: Any, loop_trace: Any) -> None:
    table = loop_trace.branches()
    before = {name: table[name].tolist() for name in table.columns}
    frame = table.to_pandas()
    for name in ("offset", "from_ip", "tsc"):
        values = frame[name].array
        data = values._data if hasattr(values, "_data") else values.to_numpy()
        assert not data.flags.writeable
        with pytest.raises(ValueError, match="read-only"):
            data[0] = 1
    for name in ("offset", "from_ip"):
        with contextlib.suppress(ValueError):  # pandas copies first, or refuses
            frame.loc[0, name] = 99
    assert {name: table[name].tolist() for name in table.columns} == before
    frame["sum"] = frame["offset"] + 1
    assert frame["sum"].iloc[0] == table["offset"][0] + 1


@pytest.mark.parametrize("backend", ["numpy_nullable", "pyarrow"])
def test_copies_can_be_written(pandas: Any, backend: str, loop_trace: Any) -> None:
    if backend == "pyarrow":
        pytest.importorskip("pyarrow")
    table = loop_trace.branches(columns=["from_ip", "to_ip", "kind", "offset", "tsc", "tid"])
    before = {name: table[name].tolist() for name in table.columns}
    frame = table.to_pandas(copy=True, dtype_backend=backend)
    frame.loc[0, "offset"] = 99
    frame.loc[1, "from_ip"] = 98
    frame.loc[2, "from_ip"] = pandas.NA
    frame.loc[3, "kind"] = "CALL"
    frame.loc[4, "tid"] = 5
    assert frame["offset"].iloc[0] == 99
    assert frame["from_ip"].iloc[1] == 98
    assert frame["from_ip"].iloc[2] is pandas.NA
    assert frame["to_ip"].notna().all(), "columns do not share a mask that can be written"
    assert frame["kind"].iloc[3] == "CALL"
    assert frame["tid"].iloc[4] == 5
    assert {name: table[name].tolist() for name in table.columns} == before


@pytest.mark.parametrize("backend", ["numpy_nullable", "pyarrow"])
def test_merge_groupby_and_sort(pandas: Any, backend: str, loop_trace: Any) -> None:
    if backend == "pyarrow":
        pytest.importorskip("pyarrow")
    table = loop_trace.branches(columns=["from_ip", "to_ip", "kind", "offset", "tsc", "tid", "stream"])
    frame = table.to_pandas(dtype_backend=backend)
    counts = frame.groupby("from_ip")["offset"].count()
    names, numbers = np.unique(np.asarray(table["from_ip"]), return_counts=True)
    assert dict(zip(counts.index.tolist(), counts.tolist(), strict=True)) == dict(
        zip(names.tolist(), numbers.tolist(), strict=True)
    )
    assert int(frame.groupby("kind", observed=True)["tsc"].max()["COND"]) == int(
        table.where(kind="COND")["tsc"].max()
    )
    assert frame.groupby("stream")["tsc"].min().tolist() == [int(table["tsc"].min())]
    assert frame.groupby("tid", dropna=False)["offset"].count().tolist() == [len(table)]
    edges = loop_trace.edges().to_pandas(["from_ip", "to_ip", "count"], dtype_backend=backend)
    merged = frame.merge(edges, on=["from_ip", "to_ip"])
    assert len(merged) == len(frame)
    assert int(merged["count"].max()) == 1000
    assert frame.sort_values("tsc", ascending=False)["tsc"].iloc[0] == table["tsc"].max()
    assert frame["kind"].value_counts()["COND"] == len(table.where(kind="COND"))


def test_unknown_backend(pandas: Any, loop_trace: Any) -> None:
    with pytest.raises(ConfigError, match="dtype_backend='arrow' is not one of 'numpy_nullable', 'pyarrow'"):
        loop_trace.branches().to_pandas(dtype_backend="arrow")


def test_polars(loop_trace: Any, packets_table: Any) -> None:
    polars = pytest.importorskip("polars")
    pytest.importorskip("pyarrow")
    table = loop_trace.branches(columns=["from_ip", "to_ip", "kind", "offset", "tsc", "tid", "taken"])
    for one in (table, packets_table):
        frame = one.to_polars()
        assert frame.columns == list(one.columns)
        for name in one.columns:
            assert frame[name].to_list() == one.named(name), name
    frame = table.to_polars()
    assert isinstance(frame["kind"].dtype, polars.Enum)
    counts = frame.group_by("from_ip").len().sort("from_ip")
    assert counts["len"].to_list() == [1200, 200]
    joined = frame.join(loop_trace.edges().to_polars(["from_ip", "to_ip", "count"]), on=["from_ip", "to_ip"])
    assert joined["count"].max() == 1000
    changed = frame.with_columns(offset=polars.lit(1, polars.UInt64))
    assert changed["offset"].to_list() == [1] * len(table)
    assert frame["offset"].to_list() == table["offset"].tolist()
    assert polars.DataFrame(table).columns == list(table.columns)


def test_names_are_those_that_are_shown(pandas: Any, clocked: Any) -> None:
    for table, names in (
        (clocked.branches(), ["from_symbol", "to_symbol"]),
        (clocked.calls(), ["entry_symbol", "call_symbol", "return_symbol"]),
        (clocked.edges(), ["from_symbol", "to_symbol"]),
    ):
        frame = table.to_pandas()
        assert [name for name in frame.columns if name not in table.columns][: len(names)] == names
        for name in names:
            assert list(frame.columns).index(name) == list(frame.columns).index(f"{name[:-6]}ip") + 1
            assert [None if one is pandas.NA or one != one else one for one in frame[name]] == table.named(
                name
            )
        assert any(one == "again" for one in frame[names[0]])
        chosen = list(table.columns[:2])
        assert list(table.to_pandas(chosen).columns) == list(table[chosen].to_pandas().columns) == chosen
        pytest.importorskip("pyarrow")
        assert table.to_arrow().column_names == list(frame.columns)


def test_constructor_takes_rows(pandas: Any, clocked: Any, packets_table: Any) -> None:
    for table in (clocked.functions(), clocked.branches()[:50], packets_table):
        frame = pandas.DataFrame(table)
        assert list(frame.columns) == list(table.to_pandas().columns)
        assert len(frame) == len(table)
        for name in frame.columns:
            found = [None if one is pandas.NA or one != one else one for one in frame[name].tolist()]
            assert found == table.named(name), name
    assert pandas.DataFrame(clocked.functions())["count"].dtype == np.int64


def test_constructor_keeps_all_digits(pandas: Any, packets_table: Any) -> None:
    frame = pandas.DataFrame(packets_table)
    assert frame["ip"].tolist() == [0xFFFFF80685389310, pandas.NA]
    assert frame["kind"].tolist() == ["TIP_PGE", "PAD"]


def test_arrays_of_rows(clocked: Any) -> None:
    functions = clocked.functions()
    rows = np.asarray(functions)
    assert rows.dtype == object
    assert rows.shape == (len(functions),)
    assert rows[0].instructions == functions["instructions"][0]
    assert [row.function for row in rows] == functions.named("function")
    with pytest.raises(
        ConfigError, match="no array of float64: the columns of functions have several dtypes"
    ):
        np.asarray(functions, dtype=float)
    with pytest.raises(ValueError, match="copy=False"):
        functions.__array__(copy=False)


def test_enumerations_are_names_in_arrow(clocked: Any) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    for table in (clocked.branches(), clocked.calls(), clocked.gaps, clocked.packets()):
        for arrow in (table.to_arrow(), pyarrow.table(table), pyarrow.record_batch(table)):
            for name in table.columns:
                if table.column(name).enum is not None:
                    kind = arrow.schema.field(name).type
                    assert kind == pyarrow.dictionary(pyarrow.int8(), pyarrow.string())
                    assert arrow.column(name).to_pylist() == table.named(name)
