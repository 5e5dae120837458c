"""drcov files and lists of module+offset: the executed blocks, by a reader of their own."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from small_elf import elf, shifted_elf
from small_pe import pe

import ptkit
from ptkit.cli import main
from ptkit.export.blocks import Blocks
from ptkit.export.drcov import _entries

LOAD = 0x7F0000000000


class Drcov(NamedTuple):
    modules: list[tuple[int, int, str]]  # base, end, path
    blocks: list[tuple[int, int, int]]  # module, RVA, bytes


def read_drcov(path: Path) -> Drcov:
    """Read a drcov file as its readers do: lines, then records of 8 bytes."""
    data = path.read_bytes()
    lines = []
    for _ in range(4):
        line, _, data = data.partition(b"\n")
        lines.append(line.decode())
    assert lines[0] == "DRCOV VERSION: 2"
    assert lines[1].startswith("DRCOV FLAVOR: ")
    version, count = lines[2].removeprefix("Module Table: ").split(", ")
    assert version == "version 2"
    assert lines[3] == "Columns: id, base, end, entry, path"
    modules = []
    for number in range(int(count.removeprefix("count "))):
        line, _, data = data.partition(b"\n")
        index, base, end, _, name = line.decode().split(", ")
        assert int(index) == number
        modules.append((int(base, 16), int(end, 16), name))
    line, _, data = data.partition(b"\n")
    blocks = int(line.removeprefix(b"BB Table: ").removesuffix(b" bbs"))
    assert len(data) == 8 * blocks
    return Drcov(modules, [(module, rva, size) for rva, size, module in struct.iter_unpack("<IHH", data)])


def moved(loop: Any, base: int) -> Any:
    return type("Moved", (loop,), {"BASE": base, "JNZ": base + 2, "JMP": base + 4})


def executed(trace: Any) -> set[tuple[int, int]]:
    """Address and size of each block that a trace has."""
    table = trace.blocks()
    return set(zip(table["ip"].tolist(), table["size"].tolist(), strict=True))


@pytest.mark.parametrize(
    ("contents", "load", "rva"),
    [
        (lambda code: pe(code, 0x140000000), LOAD, 0x1000),
        (shifted_elf, LOAD, 0x1200),
        (lambda code: elf(code, 0x400000, "main"), None, 0),
    ],
)
def test_drcov_has_the_blocks_of_the_trace(
    contents: Any, load: int | None, rva: int, tmp_path: Path, loop: Any, open_trace: Any
) -> None:
    path = tmp_path / "image"
    path.write_bytes(contents(loop.CODE))
    base = 0x400000 if load is None else load
    trace = open_trace(moved(loop, base + rva).stream(9), images=[path if load is None else (path, load)])
    done = trace.export(tmp_path / "x.drcov", "drcov")
    found = read_drcov(tmp_path / "x.drcov")
    assert done.bytes == (tmp_path / "x.drcov").stat().st_size
    assert done.notes == ()
    assert found.modules == [(base, base + 0x1000 * (1 + rva // 0x1000), str(path))]
    assert {(base + offset, size) for _, offset, size in found.blocks} == executed(trace)
    assert len(set(found.blocks)) == len(found.blocks) == 2


def test_pe_files_end_with_their_image(tmp_path: Path, loop: Any, open_trace: Any) -> None:
    """As debuggers list them: SizeOfImage, with sections that have no code."""
    path = tmp_path / "driver.sys"
    path.write_bytes(pe(loop.CODE, 0x140000000, 0x5000))
    trace = open_trace(moved(loop, LOAD + 0x1000).stream(9), images=[(path, LOAD)])
    assert [(one.base, one.size) for one in trace.info.modules] == [(LOAD, 0x5000)]
    trace.export(tmp_path / "x.drcov", "drcov")
    assert read_drcov(tmp_path / "x.drcov").modules == [(LOAD, LOAD + 0x5000, str(path))]


def test_memory_without_a_file_is_a_module(tmp_path: Path, loop: Any, loop_trace: Any) -> None:
    done = loop_trace.export(tmp_path / "x.drcov", "drcov")
    found = read_drcov(tmp_path / "x.drcov")
    assert found.modules == [(loop.BASE, loop.BASE + 0x1000, f"[anon {loop.BASE:#x}]")]
    assert {(loop.BASE + offset, size) for _, offset, size in found.blocks} == executed(loop_trace)
    assert done.notes[0].startswith("1 module of memory without a file ([anon 0x1000]): an image")
    assert "--symbols" in done.notes[0]


def test_blocks_of_no_module_are_counted(tmp_path: Path, loop: Any) -> None:
    def code(address: int, size: int, space: int) -> bytes:
        return loop.CODE[address - loop.BASE :][:size] if loop.BASE <= address < loop.BASE + 6 else b""

    trace = ptkit.open(loop.stream(5), image_callback=code, cpu="6/142/9")
    done = trace.export(tmp_path / "x.drcov", "drcov")
    assert read_drcov(tmp_path / "x.drcov") == Drcov([], [])
    assert done.notes[0].startswith("2 of 2 blocks lie in no module and are left out")


def test_errors_are_said(tmp_path: Path, loop: Any, open_trace: Any) -> None:
    trace = open_trace(loop.stream(2))
    done = trace.export(tmp_path / "x.txt", "offsets")
    assert (tmp_path / "x.txt").read_bytes() == b""
    assert done.notes[0].startswith("1 error and 1 gap: blocks may be missing")


def test_page_dumps_are_of_the_image_beneath(tmp_path: Path, dumped: Any) -> None:
    dumped.export(tmp_path / "x.drcov", "drcov")
    found = read_drcov(tmp_path / "x.drcov")
    assert {(offset, size) for _, offset, size in found.blocks} == executed(dumped)


def test_processes_share_a_module(tmp_path: Path, loop: Any) -> None:
    path = tmp_path / "program, 2"
    path.write_bytes(pe(loop.CODE, 0))
    bundle = ptkit._core.Bundle()
    for number, load in ((1, LOAD), (2, LOAD + 0x100000)):
        bundle.add_space(pid=number)
        bundle.add_image(str(path), load_address=load, space=number)
        bundle.add_stream(moved(loop, load + 0x1000).stream(3), space=number, pid=number)
    trace = ptkit.Trace(bundle, ptkit.decode.Settings())
    trace.export(tmp_path / "x.drcov", "drcov")
    found = read_drcov(tmp_path / "x.drcov")
    assert found.modules == [(LOAD, LOAD + 0x2000, str(path).replace(", ", ",_"))]
    assert len(found.blocks) == 2
    trace.export(tmp_path / "one.drcov", "drcov", pid=2)
    assert read_drcov(tmp_path / "one.drcov").blocks == found.blocks


def test_offsets_are_lines_of_module_and_rva(
    tmp_path: Path, loop: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "driver.sys"
    path.write_bytes(pe(loop.CODE, 0))
    stream = tmp_path / "raw.pt"
    stream.write_bytes(loop.stream(5))
    words = ["export", str(stream), "--image", str(path), "--processor", "6/142/9"]
    assert main([*words, "--format", "offsets", "-o", str(tmp_path / "x.txt")]) == 0
    assert (tmp_path / "x.txt").read_text() == "driver.sys+1000\ndriver.sys+1004\n"
    more = ["--format", "offsets", "--file-offsets", "--ip", hex(loop.JMP), "-o", str(tmp_path / "y.txt")]
    assert main([*words, *more]) == 0
    assert (tmp_path / "y.txt").read_text() == "driver.sys+204\n"
    capsys.readouterr()
    for options, sentence in (
        (["--format", "drcov", "--file-offsets"], "--file-offsets is for --format offsets"),
        (["--format", "drcov", "--with-code", "all"], "--with-code is for --format perf.data"),
        (["--pid", "1"], "pid"),
    ):
        assert main([*words, *options, "-o", str(tmp_path / "z")]) == 2
        assert sentence in capsys.readouterr().err
    assert not (tmp_path / "z").exists()


def test_long_blocks_become_several() -> None:
    entries = _entries(np.array([5], np.uint64), np.array([65535 + 10], np.uint64), np.array([1]))
    assert entries.tolist() == [(5, 65535, 1), (5 + 65535, 10, 1)]


def test_repeated_blocks_are_counted_once(tmp_path: Path, loop: Any, open_trace: Any) -> None:
    from ptkit.export.blocks import executed_blocks

    path = tmp_path / "driver.sys"
    path.write_bytes(pe(loop.CODE, 0))
    blocks = executed_blocks(open_trace(loop.stream(3000), images=[path]))
    assert isinstance(blocks, Blocks)
    assert blocks.rva.tolist() == [0x1000, 0x1004]
    assert blocks.size.tolist() == [4, 2]
    with pytest.raises(ptkit.ConfigError, match="columns: an export has no columns"):
        executed_blocks(open_trace(loop.stream(1)), columns=["ip"])


def test_blocks_are_the_same_where_code_changes_with_time(
    spaces: Any, dumped: Any, loop_trace: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Code is named by each row's time then; here it never changes."""
    from ptkit.export import blocks

    for trace in (spaces, dumped, loop_trace):
        before = blocks.executed_blocks(trace)
        with monkeypatch.context() as patch:
            patch.setattr(blocks, "_changes", lambda _: True)
            after = blocks.executed_blocks(trace)
        for name in ("file", "rva", "size"):
            assert np.array_equal(getattr(before, name), getattr(after, name)), name
        assert before.outside == after.outside
