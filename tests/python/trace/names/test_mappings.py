"""Modules, RVAs and offsets in files of addresses; the table of mappings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compiling import build
from small_elf import elf, shifted_elf
from small_pe import pe

import ptkit
from ptkit import capture
from ptkit.cli import main

LOAD = 0x7F0000000000


def moved(loop: Any, base: int) -> Any:
    """The loop program at another address."""
    return type("Moved", (loop,), {"BASE": base, "JNZ": base + 2, "JMP": base + 4})


@pytest.fixture
def windows(tmp_path: Path, loop: Any, open_trace: Any) -> Any:
    """A trace of a PE file: its code has RVA 0x1000 and lies at 0x200 in the file."""
    path = tmp_path / "driver.sys"
    path.write_bytes(pe(loop.CODE, 0x140000000))
    program = moved(loop, LOAD + 0x1000)
    return open_trace(program.stream(5), images=[(path, LOAD)])


@pytest.fixture
def shifted(tmp_path: Path, loop: Any, open_trace: Any) -> Any:
    """A trace of a library: its code has RVA 0x1200 and lies at 0x200 in the file."""
    path = tmp_path / "shifted.so"
    path.write_bytes(shifted_elf(loop.CODE))
    return open_trace(moved(loop, LOAD + 0x1200).stream(5), images=[(path, LOAD)])


@pytest.mark.parametrize(
    ("name", "module", "rva", "offset"),
    [("windows", "driver.sys", 0x1004, 0x204), ("shifted", "shifted.so", 0x1204, 0x204)],
)
def test_offsets_of_modules_are_rvas(
    name: str, module: str, rva: int, offset: int, request: pytest.FixtureRequest
) -> None:
    trace = request.getfixturevalue(name)
    jump = LOAD + rva
    assert trace.symbolize([jump], modules=True) == [f"[{module}]+{rva:#x}"]
    found = trace.locate([jump, 0x10])
    assert [Path(path).name if path else None for path in found.file] == [module, None]
    assert found.rva.tolist() == [rva, 0]
    assert found.file_offset.tolist() == [offset, 0]
    edges = trace.edges(kind="JUMP_INDIRECT")
    assert set(edges["from_module_offset"].tolist()) == {rva}
    assert set(edges["from_file_offset"].tolist()) == {offset}
    assert "from_file" not in edges.available


def test_printed_offsets_are_rvas(
    windows: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(ptkit, "open", lambda *_, **__: windows)
    for options, offset in (([], "+0x1004"), (["--file-offsets"], "+0x204")):
        for verb in (["branches"], ["packets", "--branches"]):
            assert main([*verb, *options, "ignored"]) == 0
            assert f"[driver.sys]{offset}" in capsys.readouterr().out


def test_an_elf_program_counts_from_its_load_address(tmp_path: Path, loop: Any, open_trace: Any) -> None:
    path = tmp_path / "program"
    path.write_bytes(elf(loop.CODE, 0x400000, "main"))
    trace = open_trace(loop.stream(1), images=[path])
    assert trace.locate(0x400004).rva.tolist() == [4]
    assert trace.locate(0x400004).file_offset.tolist() == [0x1004]


def test_mappings_say_where_files_lie(shifted: Any) -> None:
    table = shifted.mappings()
    assert table.name == "mappings"
    assert table["address"].tolist() == [LOAD, LOAD + 0x1200]
    assert table["rva"].tolist() == [0, 0x1200]
    assert table["file_offset"].tolist() == [0, 0x200]
    assert table["size"].tolist() == [0x200, 6]
    assert table["module"].tolist() == ["shifted.so"] * 2
    assert table["path"].tolist() == [shifted.info.files[0][0]] * 2
    assert table.named("tsc_from") == table.named("tsc_to") == [None, None]
    assert table["file_known"].all()
    assert f"{LOAD + 0x1200:#x}" in repr(table)
    assert table.to_pandas()["rva"].tolist() == [0, 0x1200]
    assert not table["address"].flags.writeable


def test_code_without_a_file_is_a_mapping(loop_trace: Any, loop: Any) -> None:
    table = loop_trace.mappings()
    assert table["address"].tolist() == [loop.BASE]
    assert table.named("file") == table.named("rva") == [None]
    assert loop_trace.locate(loop.BASE).file.tolist() == [None]


def test_mappings_are_no_rows_of_a_decoder(loop_trace: Any) -> None:
    with pytest.raises(ptkit.ConfigError, match="there is no table 'mappings'"):
        loop_trace.to_pandas("mappings")


def test_addresses_are_located_in_their_space(spaces: Any, loop: Any) -> None:
    ips = [loop.JMP, loop.JMP, loop.JMP]
    found = spaces.locate(ips, space=[1, 2, 3])
    assert [Path(path).name for path in found.file] == ["alpha_fn", "beta_fn", "shared_fn"]
    assert found.rva.tolist() == [4, 4, 4]
    assert Path(spaces.locate(loop.JMP, space=2).file[0]).name == "beta_fn"
    with pytest.raises(ptkit.ConfigError, match="give the space of each address"):
        spaces.locate(ips)
    with pytest.raises(ptkit.ConfigError, match="2 spaces do not fit 3"):
        spaces.locate(ips, space=[1, 2])
    with pytest.raises(ptkit.ConfigError, match="space=9"):
        spaces.locate(ips, space=np.array([1, 2, 9]))


def test_page_dumps_do_not_hide_an_image(dumped: Any, loop: Any) -> None:
    assert dumped.modules([loop.JMP], space=1) == ["driver.sys"]
    assert dumped.locate(loop.JMP, space=1).rva.tolist() == [0x1004]


def test_files_of_windows_have_names_without_folders() -> None:
    from ptkit.support.text import module_name

    assert module_name("C:\\Windows\\srv2.sys") == "srv2.sys"
    assert module_name("[vdso]") == "vdso"
    assert module_name("/usr/lib/libc.so.6") == "libc.so.6"
    assert module_name("/") == "/"


@pytest.mark.parametrize("name", ["windows", "shifted"])
def test_saved_code_keeps_its_rvas(
    name: str, tmp_path: Path, open_trace: Any, request: pytest.FixtureRequest
) -> None:
    trace = request.getfixturevalue(name)
    offsets = trace.blocks()["module_offset"].tolist()
    trace.save(tmp_path / "saved.ptk")
    again = open_trace(tmp_path / "saved.ptk")
    assert again.blocks()["module_offset"].tolist() == offsets
    assert [one.base for one in again.info.modules] == [LOAD]


@pytest.mark.parametrize("backend", ["emulator", "step"])
def test_recorded_code_counts_from_the_elf_header(backend: str, tmp_path: Path) -> None:
    if not any(one.name == backend and one.available for one in capture.probe()):
        pytest.skip(f"no {backend} here")
    program = build("strings", tmp_path, "-pie", "-fPIE", "-Wl,-Ttext=0x203400")
    entry = int.from_bytes(program.read_bytes()[24:32], "little")  # e_entry
    output = tmp_path / "strings.ptk"
    ptkit.Recorder([str(program)], output, backend=backend, quiet=True).run()
    program.unlink()  # its segments are no longer to be read
    blocks = ptkit.open(output).blocks(module="strings")
    assert blocks["module_offset"][0] == entry
    assert blocks["file_offset"][0] < 0x203400 <= entry
