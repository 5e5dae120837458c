"""Damaged files of the readers in Python: each is read or refused, in bounded time."""

from __future__ import annotations

import contextlib
import struct
import tempfile
import time
import warnings
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ptkit
from ptkit import readers

STREAM = b"\x02\x82" * 8 + b"\x02\x23" + bytes.fromhex("023200a00000000000c302320b0000000000001d")
FILES: dict[str, dict[str, bytes]] = {
    "drakvuf": {
        "ipt_stream_vcpu0": STREAM,
        "dumps/one": b"\x90" * 4096,
        "codemon.log": b'{"EventType":"execframe","CR3":"0xa000","PageVA":"0x1000","TrapPA":"0x9123","PID":4,'
        b'"TID":11,"ProcessName":"a\\\\b.exe","DumpFile":"/x/one"}\n'
        b'{"EventType":"pagefault","CR3":"0xb000","VA":"0x1234","PA":"0x9234","PID":8,"TID":22}\n',
    },
    "simple-pt": {
        "ptout.0": STREAM,
        "ptout.sideband": b"meta family 6\nmeta model 61\nmeta mtc_freq 4\nmeta tsc_ratio 2 168\n"
        b"meta nom_freq 27\n0.0 100 1a2b3000 400000 00001000 4096 \t/bin/true\n"
        b"12.5 100 1a2b3000 500000 4096 2000\t/bin/false\n",
    },
    "windows-intelpt": {
        "cpu00_bin.bin": STREAM,
        "cpu00_text.log": b"Executable name: C:\\x\\a.exe\r\nBase address: 0x7FF612340000 - Size 0xC000\r\n",
        "a.exe": b"MZ" + bytes(100),
    },
    "gdb-btrace": {
        "a.xml": b'<btrace version="1.0"><pt><pt-config><cpu vendor="GenuineIntel" family="6" model="61"/>'
        b"</pt-config><raw>" + STREAM.hex().encode() + b'</raw></pt><block begin="0x1" end="0x2"/></btrace>',
    },
    "xen": {"guest": STREAM},
}


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from(sorted(FILES)),
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 1 << 16), st.integers(0, 255)), max_size=4),
    st.tuples(st.integers(0, 9), st.integers(0, 1 << 16)) | st.none(),
    st.binary(max_size=8),
)
def test_changed_bytes_are_read_or_refused(
    format: str, changes: list[tuple[int, int, int]], cut: tuple[int, int] | None, more: bytes
) -> None:
    began = time.process_time()
    files = {name: bytearray(contents) for name, contents in FILES[format].items()}
    names = sorted(files)
    for file, at, value in changes:
        contents = files[names[file % len(names)]]
        contents[at % len(contents)] = value
    if cut is not None:
        contents = files[names[cut[0] % len(names)]]
        del contents[cut[1] % len(contents) :]
        contents += more
    with tempfile.TemporaryDirectory() as folder:
        for name, contents in files.items():
            path = Path(folder) / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(contents)
        several = format not in ("xen", "gdb-btrace")
        source = folder if several else str(Path(folder) / names[0])
        with contextlib.suppress(ptkit.PtkitError), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            bundle = readers.open_recording(readers.Source(source), format)
            assert bundle.format == format
            ptkit.open(source, format=format).packets()
    assert time.process_time() - began < 2


def _marks_and_pips(count: int) -> bytes:
    """Marks of as many processes, each with the PIP packet that has the other half of CR3."""
    parts = [b"\x02\x82" * 8]
    for number in range(1, count + 1):
        parts.append(b"\x02\x32" + struct.pack("<II", number << 12, 0xC3000000))
        parts.append(b"\x02\x43" + (number << 12 >> 5 << 1).to_bytes(6, "little"))
    return b"".join(parts)


HOSTILE = {
    "depth": ("gdb-btrace", "a.xml", b"<btrace>" + b"<a>" * 1_000_000),
    "blocks": ("gdb-btrace", "a.xml", b"<btrace>" + b"<block begin='1' end='2'/>" * 300_000 + b"</btrace>"),
    "digits": ("gdb-btrace", "a.xml", b"<btrace><raw>" + b"0 \n0" * 1_000_000 + b"</raw></btrace>"),
    "attributes": (
        "gdb-btrace",
        "a.xml",
        b"<btrace " + b"".join(b"a%d='' " % n for n in range(50_000)) + b"/>",
    ),
    "tags in a comment": ("gdb-btrace", "a.xml", b"<btrace><!--" + b'<raw><block begin="' * 200_000),
    "open blocks in a comment": (
        "gdb-btrace",
        "a.xml",
        b"<btrace><!--" + (b'<block begin="' + b" " * 4090 + b">") * 2500,
    ),
    "open blocks": ("gdb-btrace", "a.xml", b"<btrace>" + b'<block begin=">' * 700_000),
    "unlike blocks": ("gdb-btrace", "a.xml", b"<btrace>" + b'<block begin="1" end="0x2"/>' * 200_000),
    "small raws": ("gdb-btrace", "a.xml", b"<btrace>" + b"<raw>00</raw>" * 20_000),
    "one tag": ("gdb-btrace", "a.xml", b"<btrace a='" + b"x" * (8 << 20)),
    "comment": ("gdb-btrace", "a.xml", b"<btrace><!--" + b"-x" * (2 << 20)),
    "mappings": ("simple-pt", "ptout.sideband", b"1.0 1 1000 1000 0 10\t/x\n" * 100_000),
    "processes": (
        "simple-pt",
        "ptout.sideband",
        b"".join(b"1 1 %x000 0 0\t/x\n" % n for n in range(1, 100_000)),
    ),
    "tabs": ("simple-pt", "ptout.sideband", b"\t" * (4 << 20)),
    "numbers": ("simple-pt", "ptout.sideband", (b"1.0 " + b"9" * 100_000 + b" 1 1\t/x\n") * 20),
    "lines": ("drakvuf", "codemon.log", b'"CR3"\n' * 300_000),
    "a line": ("drakvuf", "codemon.log", b'"CR3"' * 1_000_000),
    "levels": ("drakvuf", "codemon.log", (b'{"CR3": ' + b"[" * 60_000 + b"\n") * 100),
    "objects": ("drakvuf", "codemon.log", b'{"CR3": "}\n{"' * 200_000),
    "halves": ("drakvuf", "ipt_stream_vcpu0", _marks_and_pips(100_000)),
    "pages": ("drakvuf", "codemon.log", b'{"EventType":"pagefault","CR3":1,"VA":1,"PA":1}\n' * 50_000),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_time_is_bounded(name: str, tmp_path: Path) -> None:
    format, file, contents = HOSTILE[name]
    for stream in ("ptout.0", "ipt_stream_vcpu0"):
        (tmp_path / stream).write_bytes(STREAM)
    (tmp_path / file).write_bytes(contents)
    source = tmp_path / file if format == "gdb-btrace" else tmp_path
    began = time.process_time()
    with contextlib.suppress(ptkit.FormatError):
        readers.open_recording(readers.Source(str(source)), format)
    assert time.process_time() - began < 2 + len(contents) / 1_000_000
