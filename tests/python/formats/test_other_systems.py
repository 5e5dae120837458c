"""Recordings by tools of other systems: each is known by its content, and decodes as the raw stream does."""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_pe import pe

import ptkit

_PAGE = 4096
_ROUNDS = 40


def _windows_intelpt(folder: Path, stream: bytes, code: Path, base: int) -> Path:
    (folder / "cpu00_bin.bin").write_bytes(stream)
    (folder / "cpu00_text.log").write_text(
        "Intel PT Trace file. Version 1.\r\nCPU ID : 0\r\n"
        f"Executable name: C:\\x\\{code.stem.upper()}.exe\r\n"
        f"Base address: 0x{base - 0x1000:016X} - Size 0x00004000\r\n\r\nBegin Trace Dump:\r\n"
    )
    return folder


def _ipttool(folder: Path, stream: bytes, code: Path, base: int) -> Path:
    """A ring that was filled: it goes on at its beginning."""
    at = 1234
    size = -(-len(stream) // _PAGE) * _PAGE
    ring = stream.rjust(size, b"\0")
    ring = ring[size - at :] + ring[: size - at]
    header = struct.pack("<QIIIII", 4711, 1, 3, 0, at, size)
    (folder / "trace").write_bytes(header + ring)
    return folder / "trace"


def _simple_pt(folder: Path, stream: bytes, code: Path, base: int) -> Path:
    (folder / "ptout.2").write_bytes(stream)
    mapping = f"{base:x} 200 512 \t{code}"
    (folder / "ptout.sideband").write_text(f"meta family 6\nmeta model 61\n0.0 77 1a2b3000 {mapping}\n")
    return folder


def _libipt_script(folder: Path, stream: bytes, code: Path, base: int) -> Path:
    (folder / "perf.data-aux-idx0.bin").write_bytes(stream)
    name = str(code).encode() + b"\0"
    name = name.ljust(-(-len(name) // 8) * 8, b"\0")
    body = struct.pack("<IIQQQ", 77, 77, base, 512, 0x200) + bytes(24) + struct.pack("<II", 5, 2) + name
    record = struct.pack("<IHH", 10, 2, len(body) + 8) + body
    (folder / "perf.data-sideband.pevent").write_bytes(record)
    return folder


def _gdb_btrace(folder: Path, stream: bytes, code: Path, base: int) -> Path:
    (folder / "btrace.xml").write_text(
        '<btrace version="1.0"><pt><pt-config><cpu vendor="GenuineIntel" family="6" model="61" '
        f'stepping="4"/></pt-config><raw>{stream.hex()}</raw></pt></btrace>'
    )
    return folder / "btrace.xml"


_MAKERS: dict[str, Callable[[Path, bytes, Path, int], Path]] = {
    "windows-intelpt": _windows_intelpt,
    "ipttool": _ipttool,
    "simple-pt": _simple_pt,
    "libipt-script": _libipt_script,
    "gdb-btrace": _gdb_btrace,
}
_WITH_CODE = ("simple-pt", "libipt-script")


@pytest.fixture
def program(tmp_path: Path, loop: Any) -> Path:
    path = tmp_path / "code" / "loop.exe"
    path.parent.mkdir()
    path.write_bytes(pe(loop.CODE, loop.BASE - 0x1000))
    return path


@pytest.mark.parametrize("engine", ["ptkit", "simple"])
@pytest.mark.parametrize("format", _MAKERS)
def test_recording_decodes_as_the_raw_stream(
    format: str, engine: str, tmp_path: Path, loop: Any, open_trace: Any, program: Path
) -> None:
    stream = loop.stream(_ROUNDS, psb_every=5)
    raw = open_trace(stream, images=loop.images(), engine=engine).branches()
    folder = tmp_path / "recording"
    folder.mkdir()
    source = _MAKERS[format](folder, stream, program, loop.BASE)
    images = None if format in _WITH_CODE else [program]
    trace = open_trace(source, images=images, engine=engine)
    assert trace.format == format
    assert f"format:        {format} (unverified: " in str(trace.info)
    branches = trace.branches()
    assert trace.errors.messages() == []
    for column in ("from_ip", "to_ip", "kind", "taken"):
        assert np.array_equal(branches[column], raw[column]), column
    assert len(open_trace(source, format=format).packets()) >= len(ptkit.packets(stream)) - 1


def test_a_program_goes_where_the_recording_says(
    tmp_path: Path, loop: Any, open_trace: Any, program: Path
) -> None:
    moved = tmp_path / "moved" / "loop.exe"
    moved.parent.mkdir()
    moved.write_bytes(pe(loop.CODE, 0x7FF600000000))
    folder = tmp_path / "recording"
    folder.mkdir()
    _windows_intelpt(folder, loop.stream(_ROUNDS), moved, loop.BASE)
    trace = open_trace(folder, images=[moved])
    assert len(trace.branches()) == 7 * _ROUNDS
    assert [(module.path, module.base) for module in trace.info.modules] == [(str(moved), loop.BASE - 0x1000)]
    # The module is the range of the address filter.
    assert trace.info.ranges == (("filter", loop.BASE - 0x1000, loop.BASE + 0x2FFF),)
    assert open_trace(folder, ranges=[]).info.ranges == ()
    assert trace.code(loop.BASE, len(loop.CODE)) == loop.CODE
    elsewhere = open_trace(folder, images=[(moved, 0x500000)])
    assert "loop.exe" in " ".join(elsewhere.errors.messages()).lower()
    (folder / "LOOP.exe").write_bytes(moved.read_bytes())  # beside the streams
    assert len(open_trace(folder).branches()) == 7 * _ROUNDS


def _pip(cr3: int) -> bytes:
    return b"\x02\x43" + (cr3 >> 5 << 1).to_bytes(6, "little")


@pytest.mark.parametrize("engine", ["ptkit", "simple"])
@pytest.mark.parametrize("others", ["", "0.0 78 55555000 1000 0 4096 \t/no/such_file\n"])
def test_unknown_page_tables_belong_to_no_process(
    others: str, engine: str, tmp_path: Path, loop: Any, packets: Any, open_trace: Any, program: Path
) -> None:
    def stay(cr3: int, rounds: int) -> bytes:
        some = (packets.tnt("10") + packets.tip(loop.BASE)) * rounds
        return _pip(cr3) + packets.pge(loop.BASE) + some + packets.fup(loop.BASE) + packets.TIP_PGD

    # A process with isolated page tables, another process, the first one again.
    stays = [stay(0x1A2B3000, 3), stay(0x99999000, 5), stay(0x1A2B2000, 1)]
    _simple_pt(tmp_path, packets.PSB + packets.MODE_64 + packets.PSBEND + b"".join(stays), program, loop.BASE)
    sideband = tmp_path / "ptout.sideband"
    sideband.write_text(sideband.read_text().replace("1a2b3000", "1a2b2000") + others)
    trace = open_trace(tmp_path, engine=engine)
    branches = trace.branches()
    own = branches.where(pid=77, kind=ptkit.BranchKind.COND)
    assert len(own) == 2 * (3 + 1)
    assert len(branches.where(kind=ptkit.BranchKind.COND)) == len(own)
    assert trace.errors.messages()  # the code of the one that is not named


def test_chunks_of_streams_stay_separate(tmp_path: Path, loop: Any, open_trace: Any) -> None:
    stream = loop.stream(_ROUNDS)
    for cpu in (0, 3):
        (tmp_path / f"cpu{cpu:02}_bin.bin").write_bytes(stream)
    trace = open_trace(tmp_path, images=loop.images())
    assert [one.cpu for one in trace.streams] == [0, 3]
    assert len(trace.branches()) == 14 * _ROUNDS


@pytest.mark.parametrize("format", _MAKERS)
def test_changed_bytes_do_not_crash(
    format: str, tmp_path: Path, loop: Any, open_trace: Any, program: Path
) -> None:
    folder = tmp_path / "recording"
    folder.mkdir()
    _MAKERS[format](folder, loop.stream(20, psb_every=5), program, loop.BASE)
    files = sorted(folder.iterdir())
    random = np.random.default_rng(5)
    for number in range(60):
        file = files[number % len(files)]
        good = file.read_bytes()
        bad = bytearray(good)
        for at in random.integers(0, len(bad), 3):
            bad[at] = random.integers(0, 256)
        file.write_bytes(bad if number % 3 else bad[: int(random.integers(0, len(bad)))])
        with contextlib.suppress(ptkit.PtkitError):
            trace = open_trace(folder if len(files) > 1 else file, format=format)
            trace.branches()
            trace.packets()
        file.write_bytes(good)
    assert open_trace(folder if len(files) > 1 else files[0]).format == format


def test_xen_format_is_read_if_it_is_named(tmp_path: Path, loop: Any, open_trace: Any) -> None:
    (tmp_path / "guest").write_bytes(loop.stream(_ROUNDS))
    trace = open_trace(tmp_path / "guest", format="xen", images=loop.images())
    assert len(trace.branches()) == 7 * _ROUNDS
    assert open_trace(tmp_path / "guest").format == "raw"


def test_blocks_of_gdb_become_branches(tmp_path: Path, loop: Any, open_trace: Any) -> None:
    rounds = 5
    # Of each round: the jump back four times taken, then not, up to the indirect jump. Newest first.
    again = f'<block begin="{loop.BASE:#x}" end="{loop.JNZ:#x}"/>'
    last = f'<block begin="{loop.BASE:#x}" end="{loop.JMP:#x}"/>'
    running = f'<block begin="{loop.BASE:#x}" end="0x0"/>'
    text = running + (last + 5 * again) * rounds
    path = tmp_path / "reply.xml"
    path.write_text(f'<btrace version="1.0">{text}</btrace>')
    trace = open_trace(path, images=loop.images())
    assert trace.format == "gdb-btrace"
    branches = trace.branches()
    assert trace.errors.messages() == []
    raw = open_trace(loop.stream(rounds), images=loop.images()).branches()
    for column in ("from_ip", "to_ip", "kind", "taken"):
        assert np.array_equal(branches[column], raw[column]), column
