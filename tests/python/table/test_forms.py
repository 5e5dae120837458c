"""pandas, Arrow and the capsule protocol."""

from __future__ import annotations

import gc
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import ptkit


def test_to_pandas_has_every_column(loop_trace: Any) -> None:
    pandas = pytest.importorskip("pandas")
    table = loop_trace.branches()
    frame = table.to_pandas()
    assert [name for name in frame.columns if not name.endswith("_symbol")] == list(table.columns)
    assert isinstance(frame["kind"].dtype, pandas.CategoricalDtype)
    assert frame["kind"].iloc[0] == "COND"
    assert (frame["from_ip"].to_numpy(dtype=np.uint64) == table["from_ip"]).all()
    assert len(loop_trace.to_pandas("instructions", columns=["ip"])) == 2600
    assert frame.groupby("kind", observed=True)["offset"].count().to_dict() == {
        "COND": 1200,
        "JUMP_INDIRECT": 200,
    }


def test_pandas_has_no_number_where_nothing_is_known() -> None:
    pandas = pytest.importorskip("pandas")
    frame = ptkit.packets(bytes.fromhex("711093388506f80000")).to_pandas()
    assert frame["ip"].iloc[0] == 0xFFFFF80685389310
    assert frame["ip"].iloc[1] is pandas.NA


def test_to_arrow_has_every_column(loop_trace: Any) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    table = loop_trace.branches(columns=["from_ip", "kind", "taken", "tid", "tsc", "tsc_error"])
    arrow = table.to_arrow()
    arrow.validate(full=True)
    assert arrow.column_names == list(table.columns)
    assert arrow.schema.field("from_ip").type == pyarrow.uint64()
    assert arrow.schema.field("taken").type == pyarrow.bool_()
    assert arrow.schema.field("from_ip").metadata == {b"unit": b"address"}
    for name in ("from_ip", "taken"):
        assert arrow[name].to_numpy().tolist() == table[name].tolist()
    assert arrow["kind"].to_pylist() == table.named("kind")
    assert arrow["tid"].null_count == len(table)
    assert loop_trace.to_arrow("edges")["count"].to_pylist() == [1000, 200, 200]


def test_arrow_shares_memory_and_keeps_it(loop_trace: Any) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    table = loop_trace.branches(columns=["offset"])
    wanted = table["offset"].tolist()
    arrow = pyarrow.table(table)
    assert arrow["offset"].chunk(0).buffers()[1].address == table["offset"].ctypes.data
    del table
    gc.collect()
    assert arrow["offset"].to_pylist() == wanted


def test_arrow_validity_comes_from_flags() -> None:
    pyarrow = pytest.importorskip("pyarrow")
    arrow = pyarrow.record_batch(ptkit.packets(bytes.fromhex("711093388506f80000")))
    assert arrow.num_rows == 2
    assert arrow.column("ip").to_pylist() == [0xFFFFF80685389310, None]
    assert arrow.column("payload2").to_pylist() == [3, 0]
    assert arrow.column("tsc").null_count == 2


def test_capsules_need_no_arrow() -> None:
    code = (
        "import sys; sys.modules['pyarrow'] = None; import ptkit\n"
        "table = ptkit.packets(bytes.fromhex('711093388506f80000'))\n"
        "print(type(table.__arrow_c_stream__()).__name__, len(table.__arrow_c_array__()),"
        " type(table.__arrow_c_schema__()).__name__)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["PyCapsule", "2", "PyCapsule"]


def test_empty_tables_convert(loop_trace: Any) -> None:
    empty = loop_trace.branches(ip=(1, 2))
    assert len(empty) == 0
    if sys.modules.get("pandas") or __import__("importlib.util").util.find_spec("pandas"):
        assert len(empty.to_pandas()) == 0
    pytest.importorskip("pyarrow")
    assert empty.to_arrow().num_rows == 0
