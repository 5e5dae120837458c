"""Columns without memory of their own, and consumers that need contiguous memory, or write."""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import ptkit
from ptkit.table.cells import is_uniform

UNIFORM = ("tsc", "tsc_error", "tsc_source", "stream", "cpu", "pid", "tid", "tid_known")


@pytest.fixture(scope="module")
def timeless(loop: Any, packets: Any, open_trace: Any) -> Any:
    """A trace of 24,000 branches without a TSC packet."""
    psb = bytes([2, 0x82]) * 8 + packets.fup(loop.BASE) + bytes([2, 0x23])
    data = psb + packets.pge(loop.BASE) + packets.tnt("111111") * 4000
    return open_trace(data, images=loop.images())


@pytest.fixture(scope="module")
def table(timeless: Any) -> Any:
    return timeless.branches()


def test_columns_of_one_value_have_no_memory(table: Any) -> None:
    assert len(table) == 24_000
    assert table.errors is not None
    assert len(table.errors) == 0
    for name in UNIFORM:
        assert is_uniform(table[name]), name
        assert table[name].dtype == table.column(name).dtype
        assert not table[name].flags.writeable
        assert table[name].shape == (24_000,)
    assert not is_uniform(table["from_ip"])
    assert not table["tsc"].any()
    assert not table["time_known"].any()
    held = sum(table[name].nbytes for name in ("from_ip", "to_ip", "kind", "flags", "offset"))
    assert held <= table.nbytes <= held + 100
    blocks = table[:0]
    assert blocks.nbytes < 200


def test_all_kinds_of_rows_have_them(timeless: Any) -> None:
    for name in ("blocks", "instructions", "packets"):
        found = getattr(timeless, name)()
        assert is_uniform(found["tsc"]), name
    blocks = timeless.blocks()
    assert is_uniform(blocks["mode"])
    assert is_uniform(blocks["flags"])
    assert set(blocks["mode"].tolist()) == {64}
    assert is_uniform(blocks["in_tx"])
    for part in timeless.iter_branches(rows=1000, reuse=True):
        assert is_uniform(part["tsc"])
        assert part["tsc"].tolist() == [0] * len(part)


def test_parts_of_a_table_keep_them(table: Any) -> None:
    mask = np.arange(len(table)) % 3 == 0
    for part in (table[5:100], table[mask], table[np.array([7, 3, 9])], table.where(taken=True)):
        assert is_uniform(part["tsc"])
        assert len(part["tsc"]) == len(part) == len(part["from_ip"])
    assert len(table[7:8]["tsc"]) == 1
    assert table[3:3]["tsc"].tolist() == []


def test_a_stream_with_times_makes_them_real(loop: Any, packets: Any, open_trace: Any) -> None:
    psb = bytes([2, 0x82]) * 8 + packets.fup(loop.BASE) + bytes([2, 0x23])
    silent = psb + packets.pge(loop.BASE) + packets.tnt("111111") * 500
    timed = loop.stream(200)
    for streams in ([silent, timed], [timed, silent], [silent, timed, silent]):
        bundle = ptkit._core.Bundle()
        bundle.add_code(loop.BASE, loop.CODE)
        for data in streams:
            bundle.add_stream(data)
        for threads in (1, 2, 5):
            trace = ptkit.Trace(bundle, ptkit.decode.Settings())
            found = trace.branches(threads=threads)
            assert not is_uniform(found["tsc"])
            for index, data in enumerate(streams):
                alone = found[np.asarray(found["stream"] == index)]
                known = alone["time_known"]
                assert known.all() if data is timed else not known.any()
                assert len(set(alone["tsc"].tolist())) > 2 if data is timed else not alone["tsc"].any()
            parts = list(trace.iter_branches(rows=700, threads=threads))
            for name in found.columns:
                joined = np.concatenate([np.asarray(part[name]) for part in parts])
                assert np.array_equal(joined, np.asarray(found[name])), name
            reused = [
                np.array(part["tsc"]) for part in trace.iter_branches(rows=700, threads=threads, reuse=True)
            ]
            assert np.array_equal(np.concatenate(reused), np.asarray(found["tsc"]))


def _saved(values: NDArray[Any]) -> NDArray[Any]:
    file = io.BytesIO()
    np.save(file, values)
    file.seek(0)
    loaded: NDArray[Any] = np.load(file)
    return loaded


CONSUMERS: dict[str, Callable[[Any], Any]] = {
    "pickle": lambda values: pickle.loads(pickle.dumps(values)),
    "pickle protocol 5": lambda values: pickle.loads(pickle.dumps(values, protocol=5)),
    "deepcopy": copy.deepcopy,
    "np.save": _saved,
    "memoryview": lambda values: np.frombuffer(memoryview(values).tobytes(), values.dtype),
    "tobytes": lambda values: np.frombuffer(values.tobytes(), values.dtype),
    "ascontiguousarray": np.ascontiguousarray,
    "astype": lambda values: values.astype(values.dtype),
    "concatenate": lambda values: np.concatenate([values[:10], values[10:]]),
    "sort": np.sort,
}


@pytest.mark.parametrize("consumer", CONSUMERS)
@pytest.mark.parametrize("name", ["tsc", "tsc_source", "tid", "tid_known"])
def test_consumers_of_arrays(table: Any, consumer: str, name: str) -> None:
    values = table[name]
    found = CONSUMERS[consumer](values)
    assert found.dtype == values.dtype
    assert found.shape == values.shape
    assert np.array_equal(np.asarray(found), np.asarray(values))
    assert found.strides == (values.dtype.itemsize,)


def test_numba(table: Any) -> None:
    numba = pytest.importorskip("numba")

    @numba.njit  # type: ignore[untyped-decorator]
    def total(values: Any) -> int:
        result = 0
        for value in values:
            result += value
        return result

    for name in ("tsc", "tid", "from_ip"):
        assert total(np.asarray(table[name])) == int(np.asarray(table[name]).astype(np.uint64).sum())


def test_arrow_gets_memory(timeless: Any) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    blocks = timeless.blocks(columns=["ip", "mode", "tsc", "stream", "in_tx", "tid"])
    arrow = blocks.to_arrow()
    arrow.validate(full=True)
    assert arrow["mode"].to_pylist() == [64] * len(blocks)
    assert arrow["stream"].to_pylist() == [0] * len(blocks)
    assert arrow["in_tx"].to_pylist() == [False] * len(blocks)
    assert arrow["tsc"].null_count == arrow["tid"].null_count == len(blocks)
    assert pyarrow.table(blocks).equals(arrow)
