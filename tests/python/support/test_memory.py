"""Memory is asked for before it is taken: what does not fit is one line, and little was taken until then."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ptkit
from ptkit.errors import OutOfMemoryError
from ptkit.support import memory

TESTS = Path(__file__).resolve().parents[2]
MIB = 1 << 20

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits are read from /proc")


def machine(folder: Path, free: int) -> str:
    """A machine on which so many bytes are free, whatever is taken: a folder for `memory.ROOT`."""
    (folder / "proc").mkdir(parents=True)
    (folder / "proc" / "meminfo").write_text(f"MemAvailable: {free // 1024} kB\n")
    return str(folder)


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Make so many MiB free: an eighth of them is not for tables. The pool is empty: it counts as free."""

    def make(mib: int) -> None:
        monkeypatch.setattr(memory, "ROOT", machine(tmp_path / f"root{mib}", mib * MIB))
        ptkit.trim_memory(limit=0)

    yield make
    ptkit.trim_memory(limit=1 << 30)


@pytest.fixture(scope="module")
def dense(loop: Any, packets: Any) -> bytes:
    """A stream of 6 million conditionals, and so many instructions twice; a PSB each 60,000."""
    chunk = loop.header(loop.BASE, 1000) + packets.tnt("111111") * 10_000
    return bytes(loop.header(None, 1000) + packets.pge(loop.BASE) + chunk * 100)


@pytest.fixture(scope="module")
def dense_trace(dense: bytes, loop: Any, open_trace: Any) -> Any:
    return open_trace(dense, images=loop.images())


ROWS = {"branches": 6_000_000, "blocks": 6_000_000, "instructions": 12_000_000, "packets": 1_000_000}

_SCRIPT = """
import json, resource, sys, warnings
sys.path.insert(0, sys.argv[1])
warnings.simplefilter("ignore")
from conftest import LoopProgram, Packets
import ptkit
from ptkit.support import memory

def status(name):
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name)) << 10

def raised(action):
    open("/proc/self/clear_refs", "w").write("5")  # the peak is that of now
    before = status("VmRSS")
    try:
        result = action()
    except MemoryError as error:
        found = [type(error).__name__, str(error)]
    else:
        found = [None, len(result)]
    return [*found, status("VmHWM") - before]

chunk = LoopProgram.header(LoopProgram.BASE, 1000) + Packets.tnt("111111") * 10_000
data = LoopProgram.header(None, 1000) + Packets.pge(LoopProgram.BASE) + chunk * 100
bundle = ptkit._core.Bundle()
bundle.add_code(LoopProgram.BASE, LoopProgram.CODE)
for _ in range(int(sys.argv[2])):
    bundle.add_stream(data)
trace = ptkit.Trace(bundle, ptkit.decode.Settings())
"""


def in_process(script: str, *, streams: int = 1) -> Any:
    """What a process of its own prints, with 6 million branches in each stream."""
    command = [sys.executable, "-c", _SCRIPT + script, str(TESTS), str(streams)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


# Limits of the process.

_LIMITED = """
used = status("VmSize" if "{limit}" == "RLIMIT_AS" else "VmData")
resource.setrlimit(resource.{limit}, (used + ({free} << 20),) * 2)
print(json.dumps([
    raised(lambda: trace.branches(threads={threads})),
    raised(lambda: trace.instructions(threads={threads})),
    raised(lambda: trace.blocks(columns=["ip"], threads={threads})),
    sum(len(part) for part in trace.iter_branches(reuse=True, threads={threads})),
]))
"""


@pytest.mark.parametrize("limit", ["RLIMIT_AS", "RLIMIT_DATA"])
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("streams", [1, 2])
def test_limits_of_the_process(limit: str, threads: int, streams: int) -> None:
    branches, instructions, blocks, counted = in_process(
        _LIMITED.format(limit=limit, threads=threads, free=150 * streams), streams=streams
    )
    for name, (error, text, peak) in {"branches": branches, "instructions": instructions}.items():
        assert error == "OutOfMemoryError"
        assert re.fullmatch(
            rf"{name}: about [\d,]+ rows take about \d+\.\d [MG]iB, and \d+\.\d MiB are free \({limit}\); "
            r"read less: columns=\[\.\.\.\], between\(\.\.\.\) or touching\(\.\.\.\), "
            rf"or parts: iter_{name}\(\)",
            text,
        ), text
        assert peak < 100 * MIB, (name, peak / MIB)
    rows = 6_000_000 * streams
    about = int(re.search(r"about ([\d,]+) rows", branches[1])[1].replace(",", ""))  # type: ignore[index]
    assert 0.9 * rows < about < 1.1 * rows
    if streams == 1:
        assert blocks[:2] == [None, rows], "8 bytes a row fit"
    assert counted == rows


# Other limits, from files that a test has written.


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("table", sorted(ROWS))
def test_tables_that_do_not_fit(table: str, threads: int, dense_trace: Any, small: Any) -> None:
    small(24)
    with pytest.raises(OutOfMemoryError) as raised:
        getattr(dense_trace, table)(threads=threads)
    assert isinstance(raised.value, MemoryError)
    assert isinstance(raised.value, ptkit.PtkitError)
    text = str(raised.value)
    assert "\n" not in text
    assert "and 21.0 MiB are free (MemAvailable)" in text
    rows = int(re.search(rf"^{table}: about ([\d,]+) rows take about ", text)[1].replace(",", ""))  # type: ignore[index]
    assert 0.9 * ROWS[table] < rows < 1.1 * ROWS[table]


def test_events_and_ticks_that_do_not_fit(loop: Any, packets: Any, open_trace: Any, small: Any) -> None:
    ticks = b"".join(packets.tsc(1000 + number) + packets.tnt("1") for number in range(600_000))
    data = loop.header(None, 999) + packets.pge(loop.BASE) + ticks
    trace = open_trace(data, images=loop.images())
    small(24)
    with pytest.raises(OutOfMemoryError, match=r"^events: about 6\d\d,\d{3} rows"):
        trace.events(ticks=True)
    assert len(trace.events()) < 10


def test_errors_that_do_not_fit(loop: Any, packets: Any, open_trace: Any, small: Any) -> None:
    wrong = packets.tip(0x9000) + packets.tnt("1")
    data = loop.header(None, 1000) + packets.pge(loop.BASE) + wrong * 1_000_000
    trace = open_trace(data, images=loop.images())
    small(24)
    with pytest.raises(OutOfMemoryError, match=r"^errors: about [\d,]+ rows take"):
        _ = trace.errors


def test_packets_alone_that_do_not_fit(dense: bytes, small: Any) -> None:
    small(24)
    with pytest.raises(OutOfMemoryError, match=r"^packets: about 1,0\d\d,\d{3} rows"):
        ptkit.packets(dense)


def test_refused_tables_take_little_memory() -> None:
    script = """
import tempfile, pathlib
folder = pathlib.Path(tempfile.mkdtemp())
(folder / "proc").mkdir()
(folder / "proc/meminfo").write_text("MemAvailable: 20480 kB\\n")
memory.ROOT = str(folder)
ptkit.trim_memory(limit=0)
print(json.dumps([raised(lambda: getattr(trace, table)(threads=threads))
                  for threads in (1, 3) for table in ("branches", "instructions", "packets")]))
import shutil
shutil.rmtree(folder)
"""
    for error, text, peak in in_process(script):
        assert error == "OutOfMemoryError", text
        assert peak < 100 * MIB, (text, peak / MIB)


def test_deep_stacks_are_refused_before_they_take_memory() -> None:
    """A few bytes of trace for 2**20 calls of a function each, which never return.

    Without a limit the tables took 0.8 to 1.7 GiB.
    """
    script = """
import pathlib, tempfile
calls = 1 << 20
bundle = ptkit._core.Bundle()
bundle.add_code(0x10000, bytes.fromhex("e80100000090") * calls + bytes.fromhex("ffe0"))  # call +1; nop
bundle.add_stream(LoopProgram.header(None, 1000) + Packets.pge(0x10000) + Packets.tip(0x10000))
trace = ptkit.Trace(bundle, ptkit.decode.Settings())
found = len(trace.branches())  # the code is decoded
with tempfile.TemporaryDirectory() as folder:
    (pathlib.Path(folder) / "proc").mkdir()
    (pathlib.Path(folder) / "proc/meminfo").write_text("MemAvailable: 49152 kB\\n")
    memory.ROOT = folder
    ptkit.trim_memory(limit=0)
    print(json.dumps([found, *map(raised, (
        trace.calls,
        lambda: sum(map(len, trace.iter_calls(rows=1000))),
        trace.functions,
        lambda: trace.functions("entry", inlines=False),
        trace.call_tree,
        lambda: trace.at_times([2000], clock="tsc"),
        lambda: trace.call_timeline("instructions"),
        lambda: trace.call_timeline("instructions", slices=1000),
    ))]))
"""
    branches, *tables = in_process(script)
    assert branches > 1 << 20
    for name, (error, text, peak) in zip(
        (
            *("calls", "calls", "functions", "functions", "call_tree", "at_times"),
            *("call_timeline", "call_timeline"),
        ),
        tables,
        strict=True,
    ):
        assert error == "OutOfMemoryError", (name, text)
        assert re.fullmatch(
            rf"{name}: the frames take more than \d+\.\d MiB, and 42\.0 MiB are free \(MemAvailable\); .*",
            text,
        ), text
        assert peak < 256 * MIB, (name, peak / MIB)  # 100 of them are the branches of one walk


def test_small_tables_do_not_look_at_free_memory(
    loop_trace: Any, small: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    small(0)
    whole = loop_trace.branches()
    assert len(whole) == 1400
    assert len(loop_trace.to_pandas()) == len(whole[whole["taken"]]) + len(whole[~whole["taken"]])
    assert len(loop_trace.branches(order="time").where(kind="COND")) == 1200


def test_a_dense_beginning_does_not_refuse(loop: Any, packets: Any, open_trace: Any, small: Any) -> None:
    """Rows are counted before a table is refused: what seems to be the first of many may be most of them."""
    sparse = (loop.header(loop.BASE, 1000) + packets.tsc(2000) * 10_000) * 100
    data = loop.header(None, 1000) + packets.pge(loop.BASE) + packets.tnt("111111") * 100_000 + sparse
    trace = open_trace(data, images=loop.images())
    expected = trace.branches(threads=1)
    small(28)  # 24.5 for 21 MiB of rows, and going by the first ones there would be 1,500 MiB
    for threads in (1, 3):
        table = trace.branches(threads=threads)
        assert len(table) == len(expected) == 600_000
        for name in table:
            assert np.array_equal(table[name], expected[name])
    small(25)  # 21.9
    with pytest.raises(OutOfMemoryError):
        trace.to_pandas()


def test_selected_rows_are_counted_before_they_are_refused(dense_trace: Any, small: Any) -> None:
    first = dense_trace.branches(columns=["offset"], kind="COND")["offset"][3_000_000]
    assert first > 0
    small(24)
    assert len(dense_trace.branches(kind="CALL")) == 0
    assert dense_trace.branches(columns=["stream"]).errors is not None
    assert len(dense_trace.branches(columns=["kind"])) == 6_000_000
    with pytest.raises(OutOfMemoryError, match="rows"):
        dense_trace.branches(taken=True)


def test_streams_in_the_order_of_time(loop: Any, open_trace: Any, small: Any) -> None:
    bundle = ptkit._core.Bundle()
    bundle.add_code(loop.BASE, loop.CODE)
    for first in (1000, 1050):
        bundle.add_stream(loop.stream(60_000, tsc=first))
    trace = ptkit.Trace(bundle, ptkit.decode.Settings())
    by_stream = trace.branches()
    by_time = trace.branches(order="time")
    small(48)  # 42.0 for 28 MiB of rows; in the order of time 28 more, and working memory
    assert len(trace.branches()) == len(by_stream) == 840_000
    with pytest.raises(OutOfMemoryError, match=r"^branches: (about )?8\d\d,\d{3} rows take"):
        trace.branches(order="time")
    parts = list(trace.iter_branches(order="time", rows=100_000))
    assert sum(len(part) for part in parts) == 840_000
    assert np.array_equal(np.concatenate([part["tsc"] for part in parts]), by_time["tsc"])


def test_iterators_of_parts_are_not_refused(dense_trace: Any, small: Any) -> None:
    small(8)
    for reuse in (False, True):
        parts = dense_trace.iter_branches(reuse=reuse, rows=100_000)
        assert sum(len(part) for part in parts) == 6_000_000


def test_parts_that_do_not_fit(dense_trace: Any, small: Any) -> None:
    small(16)
    for reuse in (False, True):
        with pytest.raises(OutOfMemoryError) as raised:
            next(dense_trace.iter_branches(rows=2_000_000, reuse=reuse))
        assert str(raised.value) == (
            "branches: parts of 2,000,000 rows take 74.4 MiB, and 14.0 MiB are free (MemAvailable); "
            "read smaller parts: rows=..."
        )


# Copies of tables that are there.


def test_copies_of_a_table(dense_trace: Any, small: Any) -> None:
    pytest.importorskip("pandas")
    table = dense_trace.branches(columns=["from_ip", "to_ip", "kind"])
    named = dense_trace.branches(columns=["from_symbol_offset"])
    taken = np.ones(len(table), np.bool_)
    small(24)
    copies = {
        "to_pandas": lambda: table.to_pandas(copy=True),
        "a copy of 6,000,000 rows": lambda: table[taken],
        "column 'from_symbol_offset' of 6,000,000 rows": lambda: named["from_symbol_offset"],
        "6,000,000 rows in pandas": lambda: dense_trace_to_pandas(table),
    }
    for words, copy in copies.items():
        with pytest.raises(OutOfMemoryError) as raised:
            copy()
        assert words in str(raised.value)
        assert "(MemAvailable); " in str(raised.value)
    assert len(table[:5_000_000]) == 5_000_000, "a slice is no copy"
    assert len(table["tid"]) == 6_000_000, "one thread is one value in memory"
    assert len(table.to_pandas(["from_ip", "kind"])) == 6_000_000, "views, and a mask"
    assert len(table[taken & (np.arange(len(table)) < 10)]) == 10
    small(400)
    assert len(table.to_pandas()) == 6_000_000


def dense_trace_to_pandas(table: Any) -> Any:
    return table.to_pandas(["from_ip", "to_ip"], copy=True)


def test_to_pandas_asks_before_it_reads(dense_trace: Any, small: Any) -> None:
    pytest.importorskip("pandas")
    small(88)  # 77 for 51.5 MiB of rows and as much for their copy
    columns = ["from_ip", "kind"]
    assert len(dense_trace.branches(columns=columns)) == 6_000_000
    with pytest.raises(OutOfMemoryError, match=r"^branches: (about )?[56],\d{3},\d{3} rows take"):
        dense_trace.to_pandas(columns=columns, copy=True)
    assert len(dense_trace.to_pandas(columns=columns)) == 6_000_000, "views, and a mask"


def test_arrow_shares_what_it_can(dense_trace: Any, small: Any) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    table = dense_trace.branches(columns=["from_ip", "to_ip", "kind"])
    small(24)
    assert pyarrow.table(table).num_rows == 6_000_000
    with pytest.raises(OutOfMemoryError, match="6,000,000 rows in Arrow"):
        table.to_arrow(["from_ip", "tid"])


def test_messages_of_many_rows(dense_trace: Any, small: Any) -> None:
    table = dense_trace.packets()
    small(24)
    with pytest.raises(OutOfMemoryError, match=r"^packets: messages of 1,000,"):
        table.messages()
    assert len(table[:100].messages()) == 100


def test_free_memory_obeys_every_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "ROOT", machine(tmp_path, 800 * MIB))
    assert memory.free() == (700 * MIB, "MemAvailable")
    monkeypatch.setattr(memory, "ROOT", str(tmp_path / "nowhere"))
    assert memory.free()[1] == "no limit"
    monkeypatch.setattr(memory, "ROOT", "")
    left, limit = memory.free()
    assert 0 < left < os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert limit in ("cgroup", "RLIMIT_AS", "RLIMIT_DATA", "MemAvailable")
    assert [memory.size_text(size) for size in (512, 3 * MIB // 2, 5 << 29, 1 << 42)] == [
        "0.5 KiB",
        "1.5 MiB",
        "2.5 GiB",
        "4,096.0 GiB",
    ]
