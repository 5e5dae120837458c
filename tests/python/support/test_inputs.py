"""What `ptkit.open` and `ptkit.packets` take."""

from __future__ import annotations

import gc
import mmap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from warned import warned

import ptkit
from ptkit import _core
from ptkit.support.inputs import map_regular


def test_every_kind_of_buffer(loop: Any, open_trace: Any, tmp_path: Path) -> None:
    data = loop.stream(20)
    path = tmp_path / "loop.pt"
    path.write_bytes(data)
    wanted = open_trace(data, images=loop.images()).branches()["from_ip"].tolist()
    assert len(wanted) == 140
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        sources = [bytearray(data), memoryview(data), np.frombuffer(data, np.uint8), mapped, path, str(path)]
        sources += [
            [data[:100], path.read_bytes()[100:]],
            [data[:7], np.frombuffer(data[7:], np.uint8)],
            [path],
        ]
        for source in sources:
            trace = open_trace(source, images=loop.images())
            assert trace.branches()["from_ip"].tolist() == wanted, type(source)
            assert len(ptkit.packets(source)) == len(ptkit.packets(data))
            del trace


def test_a_trace_is_freed_with_its_last_reference(loop: Any, open_trace: Any) -> None:
    """No garbage collection is needed: a mapped file can be closed, a buffer resized."""
    data = bytearray(loop.stream(5, psb_every=1))
    trace = open_trace(data, images=loop.images())
    assert len(trace.branches()) == 35
    assert trace.info.streams
    assert len(trace.between(percent=(0, 50)).branches()) > 0
    gc.disable()
    try:
        del trace
        data.append(0)
    finally:
        gc.enable()
    assert data[-1] == 0


def test_a_buffer_is_kept_alive(loop: Any, open_trace: Any) -> None:
    trace = open_trace(np.frombuffer(loop.stream(20), np.uint8).copy(), images=loop.images())
    assert len(trace.branches()) == 140
    frozen = bytearray(loop.stream(5))
    trace = open_trace(frozen, images=loop.images())
    with pytest.raises(BufferError):
        frozen.clear()
    assert len(trace.branches()) == 35


def test_every_kind_of_image(loop: Any, open_trace: Any, tmp_path: Path) -> None:
    raw = tmp_path / "code.bin"
    raw.write_bytes(loop.CODE)
    for images in (
        loop.images(),
        {loop.BASE: loop.CODE},
        [(raw, loop.BASE)],
        [(loop.CODE, loop.BASE)],
        [{loop.BASE: loop.CODE[:3]}, {loop.BASE + 3: np.frombuffer(loop.CODE[3:], np.uint8)}],
    ):
        assert len(open_trace(loop.stream(20), images=images).branches()) == 140


def test_image_callback_gives_code(loop: Any, open_trace: Any) -> None:
    asked = []

    def callback(address: int, size: int, space: int) -> bytes | None:
        asked.append((address, size, space))
        page = loop.CODE.ljust(0x1000, b"\xcc")
        offset = address - loop.BASE
        return page[offset : offset + size] if 0 <= offset < len(page) else None

    trace = open_trace(loop.stream(20), image_callback=callback)
    assert len(trace.branches()) == 140
    assert asked
    assert trace.code(loop.BASE, 6) == loop.CODE


def test_exceptions_of_the_image_callback_come_out(loop: Any, open_trace: Any) -> None:
    def callback(address: int, size: int, space: int) -> bytes | None:
        raise ZeroDivisionError("of the callback")

    trace = open_trace(loop.stream(20), image_callback=callback)
    with pytest.raises(ZeroDivisionError, match="of the callback"):
        trace.branches()
    with pytest.raises(ZeroDivisionError, match="of the callback"):
        list(trace.iter_branches(reuse=True))
    with pytest.raises(TypeError, match="image_callback must be callable"):
        ptkit.open(loop.stream(1), image_callback=5)  # type: ignore[arg-type]


def test_what_the_image_callback_returns_is_checked(loop: Any, open_trace: Any) -> None:
    trace = open_trace(loop.stream(2), image_callback=lambda address, size, space: np.zeros(4))
    with pytest.raises(TypeError, match="image_callback"):
        trace.branches()


def test_code_and_disassembly(loop_trace: Any, loop: Any) -> None:
    assert loop_trace.code(loop.BASE, 6) == loop.CODE
    assert loop_trace.code(loop.BASE + 4, 100) == loop.CODE[4:]
    assert loop_trace.code(0x9999, 4) == b""
    assert loop_trace.disassemble(loop.BASE) == "dec ecx"
    assert loop_trace.disassemble(loop.JMP, 2) == "jmp rax"
    assert loop_trace.disassemble(0x9999) == "(bad)"
    assert loop_trace.symbolize([loop.BASE]) == [None]


def test_symbols_of_an_elf_file(open_trace: Any, loop: Any) -> None:
    # An ELF file that is there wherever ptkit is: its own core.
    images = [*loop.images(), (_core.__file__, 0x7F0000000000)]
    trace = open_trace(loop.stream(2), images=images)
    name, address, _ = trace.symbols("PyInit__core")[0]
    assert name == "PyInit__core"
    assert trace.symbolize([address, address + 1]) == ["PyInit__core", "PyInit__core+0x1"]
    assert trace.symbolize([address + 1], offsets=False) == ["PyInit__core"]
    assert len(trace.branches(symbol="PyInit__core")) == 0
    with pytest.raises(ptkit.SymbolError, match=r"did you mean .*PyInit__core"):
        trace.branches(symbol="PyInit__coree")


def test_addresses_without_symbols_are_named_by_file(open_trace: Any, loop: Any) -> None:
    trace = open_trace(loop.stream(2), images=[*loop.images(), (_core.__file__, 0x7F0000000000)])
    first = 0x7F0000000000  # the ELF header: no function covers it
    module = Path(_core.__file__).name
    assert trace.symbolize([first]) == [None]
    assert trace.symbolize([first, first + 8], modules=True) == [f"[{module}]+0x0", f"[{module}]+0x8"]
    assert trace.symbolize([first + 8, loop.BASE], modules=True, offsets=False) == [
        f"[{module}]",
        f"[anon {loop.BASE:#x}]",
    ]


def test_an_unknown_processor_gets_a_warning(loop: Any) -> None:
    with warned("CPU_UNKNOWN"):
        ptkit.open(loop.stream(2))
    trace = ptkit.open(loop.stream(2), cpu="6/158/10")
    assert trace.info.cpu == (6, 158, 10)


def test_settings_reach_the_clock(loop: Any) -> None:
    trace = ptkit.open(
        loop.stream(2),
        cpu="6/158",
        images=loop.images(),
        tsc_ctc_ratio=(216, 2),
        mtc_period=3,
        max_nonturbo_ratio=30,
        tsc_hz=2_000_000_000,
    )
    assert trace.info.tsc_ctc_ratio == (216, 2)
    assert trace.info.mtc_period == 3
    table = trace.branches(columns=["tsc", "time_ns"])
    assert table.columns == ("tsc", "time_ns")
    assert (table["time_ns"] == (table["tsc"] // 2).astype(np.int64)).all()
    assert trace.info.as_dict()["streams"][0]["size"] == len(loop.stream(2))


def test_packets_begin_where_asked(loop: Any) -> None:
    data = b"\x19\x00" + loop.stream(2)
    from_psb = ptkit.packets(data, sync=True)
    assert from_psb.named("kind")[0] == "PSB"
    assert int(from_psb["offset"][0]) == 2
    assert from_psb.gaps.named("cause") == ["START"]
    nothing = ptkit.packets(b"\x00" * 10, sync=True)
    assert len(nothing) == 0
    assert nothing.errors.named("code") == ["NO_SYNC"]


def test_every_trace_of_the_corpus_opens(corpus: Path, open_trace: Any) -> None:
    assert open_trace(corpus / "libxdc" / "Unzip").format == "libxdc"
    assert open_trace(corpus / "lldb" / "intelpt-trace" / "trace.json").format == "lldb"


def test_files_are_mapped(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"one\ntwo")
    mapped = map_regular(str(path))
    assert (mapped.find(b"two"), mapped[:3], len(mapped)) == (4, b"one", 7)
    with pytest.raises(TypeError):
        mapped[0] = 0  # type: ignore[index]
    path.write_bytes(b"")
    assert map_regular(str(path)) == b""
    for other in (tmp_path, tmp_path / "none", Path("/dev/null")):
        with pytest.raises(ptkit.OpenError):
            map_regular(str(other))
