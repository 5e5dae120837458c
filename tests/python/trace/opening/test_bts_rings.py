"""BTS buffers that were rings, and switches of threads in branch records."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from warned import warned

import ptkit
from ptkit.cli import main

KERNEL = 0xFFFFFFFF81000000
# From and to, in the order of execution: user code calls the kernel and comes back.
ROUND = (
    (0x401010, 0x401000),
    (0x401020, KERNEL),
    (KERNEL + 8, KERNEL + 4),
    (KERNEL + 9, 0x401022),
    (0x401030, 0x401100),
    (0x401140, 0x401800),
)
USER = ((0x1001, 0x1000), (0x1004, 0x1000), (0x1001, 0x1003))
LOOP = bytes.fromhex("90 74fd 90 ebfa")  # 1000 nop; 1001 jz 1000; 1003 nop; 1004 jmp 1000


def dump(path: Path, rows: Any, begin: int = 0, *, word: str = "<u8", empty: int = 0) -> Path:
    """A buffer whose oldest record is the one at index `begin`."""
    ds = np.zeros((len(rows) + empty, 3), word)
    ds[: len(rows), :2] = np.roll(np.array(rows, np.uint64), begin, axis=0)
    path.write_bytes(ds.tobytes())
    return path


def pairs(trace: ptkit.Trace) -> list[tuple[int, int]]:
    table = trace.branches(taken=True)
    return list(zip(table["from_ip"].tolist(), table["to_ip"].tolist(), strict=True))


@pytest.mark.parametrize("begin", range(len(ROUND)))
def test_a_ring_is_put_in_order_where_the_seam_is_certain(tmp_path: Path, begin: int) -> None:
    path = dump(tmp_path / "dump.bts", ROUND, begin)
    if begin == 0:
        trace = ptkit.open(path, format="bts")
        assert trace.info.warnings == ()
    else:
        with warned("BTS_RING_ORDERED", begin):
            trace = ptkit.open(path, format="bts")
    assert pairs(trace) == list(ROUND)
    assert trace.branches()["offset"].tolist() == [0, 1, 2, 3, 4, 5]


def test_an_order_that_is_not_certain_is_said(tmp_path: Path) -> None:
    path = dump(tmp_path / "dump.bts", USER, 1)
    with warned("BTS_ORDER_UNKNOWN"):
        trace = ptkit.open(path, format="bts")
    assert pairs(trace) == [USER[2], USER[0], USER[1]]
    for index, rows in ((1, list(USER)), (0, [USER[2], USER[0], USER[1]])):
        trace = ptkit.open(path, format="bts", bts_index=index)
        assert trace.info.warnings == ()
        assert pairs(trace) == rows


def test_a_buffer_that_is_not_full_has_not_wrapped(tmp_path: Path) -> None:
    path = dump(tmp_path / "dump.bts", USER, empty=2)
    for index in (None, 3, 5):
        trace = ptkit.open(path, format="bts", bts_index=index)
        assert trace.info.warnings == ()
        assert pairs(trace) == list(USER)
    with pytest.raises(ptkit.ConfigError, match="bts_index=6: the buffer has 5 records"):
        ptkit.open(path, format="bts", bts_index=6)


def test_rings_of_32_bit_systems(tmp_path: Path) -> None:
    rows = np.array(ROUND, np.uint64)
    rows[rows >= KERNEL] -= np.uint64(KERNEL - 0xF7000000)
    path = dump(tmp_path / "dump.bts", rows, 2, word="<u4")
    with warned("BTS_RING_ORDERED", 2):
        trace = ptkit.open(path, format="bts32")
    assert pairs(trace) == [tuple(row) for row in rows.tolist()]
    again = ptkit.open_branches(path.read_bytes(), record_bytes=12, bts_index=2)
    assert pairs(again) == pairs(trace)


def area(
    path: Path,
    rows: Any,
    index: int,
    *,
    buffer: int,
    gap: int,
    empty: int = 0,
    more: int = 0,
    word: str = "<u8",
) -> Path:
    """A DS area with its buffer at an address, `gap` bytes behind; `more`: bytes at the end."""
    dump(path, rows, index, word=word, empty=empty)
    size = 3 * np.dtype(word).itemsize
    end = buffer + size * (len(rows) + empty)
    words = np.array([buffer, buffer + size * index, end + 1, end - size], word).tobytes()
    path.write_bytes(words.ljust(gap, b"\0") + path.read_bytes() + bytes(more))
    return path


@pytest.mark.parametrize(
    ("buffer", "gap", "more"),
    [
        (0xFFFF_A000_0000_1080, 0x80, 0),  # in the page of the area
        (0xFFFF_A000_0000_1080, 0x80, 0xF00),  # all of the page
        (0xFFFF_A000_0000_2000, 0x1000, 0),  # in the next one
        (0xFFFF_A000_0000_1C40, 0x60, 0),  # of an allocator: the area does not begin a page
    ],
)
def test_a_ds_area_before_its_buffer_has_the_index(tmp_path: Path, buffer: int, gap: int, more: int) -> None:
    rows = [*ROUND, *USER]  # these alone do not tell which one is the oldest
    for index in range(len(rows)):
        path = area(tmp_path / "dump.bts", rows, index, buffer=buffer, gap=gap, more=more)
        trace = ptkit.open(path, format="bts")
        assert trace.info.warnings == ()
        assert pairs(trace) == rows
        assert pairs(ptkit.open_branches(path.read_bytes())) == rows
    # What is given wins.
    assert pairs(ptkit.open(path, format="bts", bts_index=0)) == [*rows[1:], rows[0]]
    path = area(tmp_path / "dump.bts", rows, 0, buffer=buffer, gap=gap, more=more, empty=3)
    assert pairs(ptkit.open(path, format="bts")) == rows


def test_ds_areas_of_32_bit_systems(tmp_path: Path) -> None:
    path = area(tmp_path / "dump.bts", USER, 1, buffer=0xF700_0020, gap=0x20, word="<u4")
    assert pairs(ptkit.open(path, format="bts32")) == list(USER)
    assert pairs(ptkit.open_branches(path.read_bytes(), record_bytes=12)) == list(USER)


def test_a_ds_area_without_its_buffer_is_refused(tmp_path: Path) -> None:
    path = area(tmp_path / "dump.bts", USER, 0, buffer=0xFFFF_A000_0000_1080, gap=0x80)
    path.write_bytes(path.read_bytes()[:0x90])
    with pytest.raises(ptkit.FormatError, match="not the buffer that it names"):
        ptkit.open(path, format="bts")
    with pytest.raises(ptkit.FormatError, match="is not in these bytes"):
        ptkit.open_branches(path.read_bytes())


def test_branch_records_have_no_filter(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = dump(tmp_path / "dump.bts", USER)
    with pytest.raises(ptkit.ConfigError, match="no address filter leaves out"):
        ptkit.open(path, format="bts", ranges=[("filter", 0x1000, 0x1FFF)])
    assert main(["branches", str(path), "--format", "bts", "--range", "0x1000-0x1fff"]) != 0
    assert "--ip FIRST-LAST" in capsys.readouterr().err
    assert len(ptkit.open(path, format="bts", bts_index=0, ranges=[]).branches()) == 3


@pytest.mark.parametrize("index", [-1, 1.5, True])
def test_an_index_is_a_number_of_a_bts_buffer(tmp_path: Path, index: Any) -> None:
    path = dump(tmp_path / "dump.bts", USER)
    with pytest.raises(ptkit.ConfigError, match="bts_index"):
        ptkit.open(path, format="bts", bts_index=index)
    with pytest.raises(ptkit.ConfigError, match="bts_index"):
        ptkit.open_branches(path.read_bytes(), bts_index=index)


def test_only_bts_buffers_have_an_index(tmp_path: Path) -> None:
    path = dump(tmp_path / "dump.bts", USER)
    with pytest.raises(ptkit.ConfigError, match='say format="bts"'):
        ptkit.open(path, bts_index=1)
    with pytest.raises(ptkit.ConfigError, match="only bytes of a debug store area"):
        ptkit.open_branches(np.array(USER, np.uint64), bts_index=1)


def test_the_command_line_takes_the_index(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = dump(tmp_path / "dump.bts", USER, 1)
    assert main(["branches", str(path), "--no-header", "--format", "bts", "--bts-index", "1"]) == 0
    said = capsys.readouterr()
    assert said.err == ""
    assert said.out.index("1001 ") < said.out.index("1004 ")
    assert main(["branches", str(path), "--format", "bts"]) == 0
    assert "--bts-index N" in capsys.readouterr().err


SWITCHES = [(2, 10, 11), (4, 20, 20)]


def test_switches_tell_threads_apart() -> None:
    rows = np.array([(0x1004, 0x1000)] * 6, np.uint64)
    trace = ptkit.open_branches(rows, pid=10, tid=10, switches=SWITCHES, images={0x1000: LOOP})
    table = trace.branches(taken=True)
    assert table["tid"].tolist() == [10, 10, 11, 11, 20, 20]
    assert table["pid"].tolist() == [10, 10, 10, 10, 20, 20]
    # No path leads from one thread's record to another's: the code between is not executed there.
    assert trace.branches(taken=False)["offset"].tolist() == [1, 3, 5]
    assert trace.gaps.named("cause") == ["FILTERED"] * 2
    assert trace.gaps["end"].tolist() == [2, 4]
    assert len(trace.errors) == 0
    assert trace.branches(tid=11, taken=True)["offset"].tolist() == [2, 3]


def test_an_unknown_thread_is_unknown() -> None:
    rows = np.array([(0x1004, 0x1000)] * 3, np.uint64)
    trace = ptkit.open_branches(rows, switches=[(1, None, 7), (2, None, None)])
    table = trace.branches()
    assert table["tid_known"].tolist() == [False, True, False]
    assert table["tid"].tolist()[1] == 7


@pytest.mark.parametrize(
    ("switches", "words"),
    [
        ([(1, 2)], "is not"),
        ([7], "is not"),
        ([(-1, 1, 1)], "record=-1"),
        ([(1, 1, -2)], "id=-2"),
        ([(3, 1, 1), (2, 1, 1)], "in order"),
    ],
)
def test_bad_switches_are_refused(switches: Any, words: str) -> None:
    with pytest.raises(ptkit.ConfigError, match=words):
        ptkit.open_branches(np.array([(0x1004, 0x1000)], np.uint64), switches=switches)
