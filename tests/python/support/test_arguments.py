"""Arguments: NumPy's numbers are taken, anything else is refused by name, with the limit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ptkit
from ptkit import _core


@pytest.mark.parametrize(
    "query",
    [
        {"stream": np.array([0])},
        {"stream": np.array(0)},
        {"stream": np.uint8(0)},
        {"stream": range(1)},
        {"stream": {0}},
        {"threads": np.int64(2)},
        {"ip": np.array([[0x1000, 0x2000]])},
        {"ip": np.array([0x1000, 0x2000])},
        {"ip": [0x1000, 0x2000]},
        {"ip": [(0, 0x1001), (0x1001, 2**64)]},
        {"time": (0, np.uint64(2**63))},
        {"time": (0.0, None)},
        {"columns": ("from_ip", "kind")},
        {"columns": np.array(["from_ip"])},
    ],
)
def test_numbers_of_numpy_are_numbers(loop_trace: Any, query: dict[str, Any]) -> None:
    found = loop_trace.branches(**query)
    assert found["from_ip"].tolist() == loop_trace.branches(time=query.get("time"))["from_ip"].tolist()


def test_a_name_that_is_no_text_is_no_symbol(loop_trace: Any) -> None:
    with pytest.raises(ptkit.SymbolError, match="no symbol"):
        loop_trace.branches(symbol="\ud800")


def test_bools_of_numpy_are_bools(loop_trace: Any) -> None:
    assert len(loop_trace.branches(taken=np.True_)) == len(loop_trace.branches(taken=True)) == 1200
    assert len(loop_trace.branches(taken=np.False_)) == 200


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ({"stream": 0.0}, "stream=0.0: "),
        ({"stream": True}, "stream=True: "),
        ({"stream": "0"}, "stream='0': "),
        ({"stream": np.array([0.0])}, r"stream=0.0: "),
        ({"stream": 7}, "no stream 7 in this trace: it has stream 0 only"),
        ({"tid": 1.5}, r"tid=1.5: .*\[0, 2\*\*31\)"),
        ({"tid": 99999999999999999999}, r"tid=99999999999999999999: .*2\*\*31"),
        ({"pid": -1}, "pid=-1: "),
        ({"pid": [1, None]}, "pid=None: "),
        ({"threads": 1.0}, "threads=1.0: .*None takes all cores"),
        ({"threads": 2**80}, "threads="),
        ({"kind": "CALLS"}, "kind='CALLS': BranchKind has no member of this name; did you mean CALL"),
        ({"kind": 17}, "kind=17: .*see ptkit.BranchKind"),
        ({"kind": [1.5]}, "kind=1.5: "),
        ({"taken": "yes"}, "taken='yes'"),
        ({"taken": 1.0}, "taken=1.0"),
        ({"time": (0, float("inf"))}, "time=inf: .*None leaves an end open"),
        ({"time": (1.5, 2)}, "time=1.5: "),
        ({"time": (-1, 2)}, "time=-1: "),
        ({"ip": (1.0, 2.0)}, "ip="),
        ({"ip": (-1, 5)}, "ip=-1: "),
        ({"ip": "main"}, "ip='main'"),
        ({"symbol": 5}, "symbol: expected a name, or a list of names, found 5"),
        ({"order": np.array([1, 2])}, "is not one of 'stream', 'time'"),
        ({"symbol": b"main"}, "symbol: expected a name, or a list of names, found b'main'"),
        ({"columns": 5}, "columns=5 must be a list of names"),
        ({"columns": ["from_ip", 5]}, "must be a list of names"),
    ],
)
def test_what_is_no_number_is_refused(loop_trace: Any, query: dict[str, Any], text: str) -> None:
    with pytest.raises(ptkit.ConfigError, match=text):
        loop_trace.branches(**query)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda t: t.symbolize([0x1000], tsc=-1), "tsc=-1: "),
        (lambda t: t.symbolize([[0x1000], [0x2000]]), r"ips=\[4096\]"),
        (lambda t: t.symbolize(np.zeros((2, 2), np.uint64)), "ips: an array of 2 dimensions"),
        (lambda t: t.symbolize([1.5]), "ips=1.5: "),
        (lambda t: t.symbolize([-1]), "ips=-1: "),
        (lambda t: t.symbolize(np.array([-1])), "ips: -1 is not in"),
        (lambda t: t.symbolize([0x1000], space=1), r"space=1: .*\[0, 0\]"),
        (lambda t: t.symbolize([0x1000], space="a"), "space='a': "),
        (lambda t: t.modules([-1]), "ips=-1: "),
        (lambda t: t.modules([0x1000], space=1), r"space=1: .*\[0, 0\]"),
        (lambda t: t.code(-1, 5), "ip=-1: "),
        (lambda t: t.code(0x1000, 2**50), "size=1125899906842624: "),
        (lambda t: t.code(0x1000, -1), "size=-1: "),
        (lambda t: t.code(0x1000, 1, tsc="now"), "tsc='now': "),
        (lambda t: t.disassemble(2**64), "ip=18446744073709551616: "),
        (lambda t: t.disassemble(0x1000, 99), r"size=99: .*\[1, 15\]"),
        (lambda t: t.iter_branches(rows=10**30), r"rows=10+: .*2\*\*48"),
        (lambda t: t.iter_edges(rows=0), "rows=0: "),
        (lambda t: t.symbols(5), "symbol=5"),
        (lambda t: t.branches()[None], r"table\[None\]: "),
        (lambda t: t.branches()[1.5], r"table\[1.5\]: "),
        (lambda t: t.branches()[[[0, 1]]], r"table\[\[\[0, 1\]\]\]: "),
        (lambda t: t.to_pandas("kind"), "there is no table 'kind'"),
        (lambda t: t.branches().to_pandas("kind"), r"columns='kind' must be a list of names"),
        (lambda t: t.branches().to_arrow("kind"), r"columns='kind' must be a list of names"),
    ],
)
def test_no_signatures_reach_the_user(loop_trace: Any, call: Any, text: str) -> None:
    pytest.importorskip("pandas", reason="the table as pandas has it")
    pytest.importorskip("pyarrow", reason="the table as Arrow has it")
    with pytest.raises(ptkit.ConfigError, match=text):
        call(loop_trace)


def test_addresses_of_every_integer_type_are_taken(loop_trace: Any) -> None:
    high = 2**64 - 1
    for ips in ([1, high], (1, high), np.array([1, high], np.uint64), np.array([1, 2], np.int32), 5, []):
        assert loop_trace.symbolize(ips) == [None] * np.size(ips)
    assert loop_trace.code(np.uint64(0x1000), np.int32(2)) == bytes.fromhex("ffc9")


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"mtc_period": "3"}, r"mtc_period='3': .*\[0, 15\]"),
        ({"mtc_period": 1.5}, "mtc_period=1.5: "),
        ({"max_nonturbo_ratio": 0}, r"max_nonturbo_ratio=0: .*\[1, 255\]"),
        ({"tsc_hz": float("nan")}, "tsc_hz=nan: "),
        ({"tsc_hz": 2**64}, "tsc_hz="),
        ({"tsc_ctc_ratio": 5}, r"tsc_ctc_ratio=5: give \(CPUID 15H EBX, EAX\)"),
        ({"tsc_ctc_ratio": (1, 0)}, "tsc_ctc_ratio: EAX=0: "),
        ({"tsc_ctc_ratio": "12"}, "tsc_ctc_ratio='12': "),
        ({"crystal_hz": 24_000_000}, "crystal_hz=24000000 needs the ratio"),
        ({"crystal_hz": 0}, "crystal_hz=0: "),
        ({"perf_time": (1, 2)}, "perf_time=.*time_mult, time_shift, time_zero"),
        ({"perf_time": (1, 64, 0)}, r"time_shift=64: .*\[0, 63\]"),
        ({"perf_time": (0, 5, 0)}, "time_mult=0: "),
        ({"format": 5}, "format=5 must be the name"),
        ({"threads": 0}, "threads=0: "),
        ({"images": 5}, "images=5 must be a list"),
        ({"images": [5]}, "images: 5 is not one of"),
        ({"images": [(5, 0x1000)]}, "images: 5 is not one of"),
        ({"images": {0: "x"}}, "code must be bytes, not str"),
        ({"images": {0.5: b"x"}}, "address=0.5: "),
        ({"images": {2**64: b"x"}}, "address=18446744073709551616: "),
        ({"images": b"\x90"}, "bytes need an address"),
        ({"images": bytearray(b"\x90")}, "bytes need an address"),
    ],
)
def test_settings_of_open_are_checked(loop: Any, options: dict[str, Any], text: str) -> None:
    with pytest.raises(ptkit.ConfigError, match=text):
        ptkit.open(loop.stream(1), cpu="6/158", **options)


def test_whole_floats_are_settings(loop: Any) -> None:
    trace = ptkit.open(
        loop.stream(1), cpu="6/158", tsc_hz=1e9, mtc_period=np.int64(3), tsc_ctc_ratio=[216, 2]
    )
    assert (trace.info.tsc_hz, trace.info.mtc_period, trace.info.tsc_ctc_ratio) == (10**9, 3, (216, 2))


def test_the_crystal_gives_nanoseconds(loop: Any) -> None:
    images = loop.images()
    trace = ptkit.open(
        loop.stream(5), cpu="6/158", images=images, tsc_ctc_ratio=(250, 3), crystal_hz=24_000_000
    )
    assert trace.info.tsc_hz == 2_000_000_000
    table = trace.branches()
    assert (table["time_ns"] == (table["tsc"] // 2).astype(np.int64)).all()
    said = ptkit.open(loop.stream(5), cpu="6/158", tsc_ctc_ratio=(250, 3), crystal_hz=24e6, tsc_hz=10**9)
    assert said.info.tsc_hz == 10**9


def test_times_of_perfs_clock(loop: Any) -> None:
    perf_time = (1 << 9, 10, 1_000_000)
    trace = ptkit.open(
        loop.stream(5), cpu="6/158", images=loop.images(), perf_time=perf_time, tsc_hz=4_000_000_000
    )
    assert trace.info.perf_time == perf_time
    table = trace.branches()
    assert table["time_known"].any()
    assert (table["time_ns"] == (table["tsc"] // 2 + 1_000_000).astype(np.int64)).all()


def test_paths_that_are_none(loop: Any, tmp_path: Any) -> None:
    with pytest.raises(ptkit.MissingFileError, match="is empty"):
        ptkit.open("")
    with pytest.raises(ptkit.ConfigError, match="NUL"):
        ptkit.open("a\0b")
    with pytest.raises(ptkit.FormatError, match="is a folder"):
        ptkit.open([tmp_path])
    with pytest.raises(ptkit.FormatError, match="is a folder"):
        ptkit.packets(tmp_path)


def test_lazy_modules_are_attributes() -> None:
    import subprocess
    import sys

    code = "import ptkit; assert 'capture' in dir(ptkit); print(len(ptkit.capture.probe()), ptkit.analysis)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("4 <module 'ptkit.analysis'")
    with pytest.raises(AttributeError, match="no attribute 'captur'"):
        ptkit.captur  # noqa: B018


def test_the_core_takes_spaces() -> None:
    bundle = _core.Bundle()
    assert bundle.add_space(pid=5, cr3=0x1000) == 1
    assert bundle.spaces == [(None, None), (5, 0x1000)]


def test_an_unknown_argument_names_those_of_the_method(loop: Any, open_trace: Any) -> None:
    trace = open_trace(loop.stream(1))
    for method, own in (
        (trace.functions, "by, frames, tails"),
        (trace.edges, "by, bins"),
        (trace.blocks, ""),
    ):
        name = method.__name__
        with pytest.raises(TypeError, match=rf"{name}\(\) has no argument 'top'; there are {own}.*columns, "):
            method(top=5)
