"""Readers in Python: what each takes from files in the layout of the programs that write them."""

from __future__ import annotations

import json
import os
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from warned import of_code

import ptkit
from ptkit import _core, readers

PSB = b"\x02\x82" * 8
STREAM = PSB + b"\x02\x23" + b"\x71\x10\x00\x40\x00\x00\x00\x00\x00"


def opened(path: Path, format: str = "", binaries: tuple[str, ...] = ()) -> _core.Bundle:
    return readers.open_recording(readers.Source(str(path), binaries=binaries), format)


def codes(bundle: _core.Bundle) -> list[tuple[str, tuple[str, ...]]]:
    return [(str(one.code), one.arguments) for one in bundle.warnings]


def failure_of(path: Path, format: str) -> str:
    with pytest.raises(ptkit.FormatError) as refused:
        opened(path, format)
    return str(refused.value)


def bytes_of(bundle: _core.Bundle, stream: int = 0) -> bytes:
    return _core.StreamBytes(bundle, stream).read(0, 1 << 30)


def test_order_of_detection() -> None:
    first = "ptk perf.data lldb drakvuf simple-pt windows-intelpt libxdc libipt-script ipttool gdb-btrace xen"
    assert [name for name, _, _ in readers.formats()] == [*first.split(), "bts", "bts32", "raw"]
    unverified = {name for name, _, guessed in readers.formats() if guessed}
    assert unverified >= {"drakvuf", "simple-pt", "windows-intelpt", "gdb-btrace", "xen"}


def test_unknown_formats_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "stream.pt"
    path.write_bytes(STREAM)
    with pytest.raises(ptkit.ConfigError, match=r"unknown format 'etm'; known formats: ptk, .*, raw"):
        ptkit.open(path, format="etm")
    with pytest.raises(ptkit.FormatError, match=r"is a folder, and .* file"):
        ptkit.open(tmp_path, format="gdb-btrace")


# ---- WindowsIntelPT

WINDOWS_LOG = (
    "Intel PT Trace file. Version 1.0.\r\nCPU ID : 2\r\nExecutable name: C:\\work\\Target.exe\r\n"
    "Base address: 0x00007FF612340000 - Size 0x0000C000\r\n\r\nBegin Trace Dump:\r\n"
    "Executable name: not this\r\n0000 psb\r\n"
)


def test_windows_intelpt_has_cpus_and_the_module(tmp_path: Path) -> None:
    (tmp_path / "cpu02_bin.bin").write_bytes(STREAM)
    (tmp_path / "cpu11_bin.bin").write_bytes(STREAM.ljust(4096, b"\0"))
    (tmp_path / "cpu12_bin.bin").write_bytes(b"")
    for cpu in ("02", "11"):
        (tmp_path / f"cpu{cpu}_text.log").write_bytes(WINDOWS_LOG.encode())
    bundle = opened(tmp_path)
    assert bundle.format == "windows-intelpt"
    assert [stream["cpu"] for stream in bundle.streams] == [2, 11]
    assert [name for name, _ in bundle.files] == ["C:\\work\\Target.exe"]
    assert bundle.code == [(0x7FF612340000, 0xC000, False, 0, 0)]
    assert bundle.configuration["ranges"] == [("filter", 0x7FF612340000, 0x7FF61234BFFF)]
    missing = json.loads(bundle.metadata)["missing_files"]
    assert [one["path"] for one in missing] == ["C:\\work\\Target.exe"]
    assert codes(bundle) == [("WINDOWS_BUFFER_CUT", ("1",))]
    assert len(opened(tmp_path / "cpu02_bin.bin").streams) == 1
    (tmp_path / "Target.exe").write_text("no PE file")
    assert of_code(opened(tmp_path).warnings, "IMAGE_UNREADABLE")


def test_windows_intelpt_reads_files_of_its_folder_alone(tmp_path: Path) -> None:
    (tmp_path / "cpu00_bin.bin").write_bytes(STREAM.ljust(4096, b"\0"))
    for name in (b"C:a.exe", b"C:\\x\\\xff.exe", b"C:\\x\\"):
        log = b"Executable name: " + name + b"\r\nBase address: 0x10000 - Size 0x2000\r\n"
        (tmp_path / "cpu00_text.log").write_bytes(log)
        (tmp_path / "C:a.exe").write_bytes(b"MZ" + bytes(100))
        bundle = opened(tmp_path)
        assert bundle.code == [(0x10000, 0x2000, False, 0, 0)]
        assert len(json.loads(bundle.metadata)["missing_files"]) == 1, name
        assert codes(bundle) == []


def test_windows_intelpt_takes_numbers_with_one_prefix(tmp_path: Path) -> None:
    (tmp_path / "cpu00_bin.bin").write_bytes(STREAM)
    log = tmp_path / "cpu00_text.log"
    for size, read in (
        ("2000", True),
        ("0X2000", True),
        ("0x0x2000", False),
        ("0x2_000", False),
        ("-1", False),
    ):
        log.write_text(f"Executable name: a.exe\r\nBase address: 0x10000 - Size {size}\r\n")
        assert bool(opened(tmp_path).code) == read, size


def test_windows_intelpt_without_a_module(tmp_path: Path) -> None:
    (tmp_path / "cpu00_bin.bin").write_bytes(STREAM)
    (tmp_path / "cpu00_text.log").write_text("Intel PT\r\nBase address: 0xFFFFFFFFFFFFF000 - Size 0x2000\r\n")
    assert opened(tmp_path).code == []
    (tmp_path / "other.bin").write_bytes(STREAM)
    assert "cpuNN_bin.bin" in failure_of(tmp_path / "other.bin", "windows-intelpt")


# ---- simple-pt


def test_simple_pt_reads_numbers_in_their_radix(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_bytes(b"h" * 0x1000 + b"c" * 0x2000)
    # Mappings from before the recording: hexadecimal offset, decimal size. Later ones: decimal offset,
    # hexadecimal size.
    (tmp_path / "ptout.sideband").write_text(
        "meta family 6\nmeta model 61\nmeta stepping 4\nmeta mtc_freq 4\nmeta nom_freq 27\n"
        f"meta tsc_ratio 2 168\n0.0 100 1a2b3000 400000 00001000 4096 \t{program}\n"
        f"12.345678 100 1a2b3000 500000 4096 2000\t{program}\n"
        "13.5 200 77777000 7f0000000000 0\t/no/such_file\nbad line\nmeta unknown 3\n"
    )
    for name in ("ptout.0", "ptout.3"):
        (tmp_path / name).write_bytes(STREAM)
    (tmp_path / "ptout.cpuid").write_text("Family: 6\n")
    bundle = opened(tmp_path)
    assert bundle.format == "simple-pt"
    assert [(stream["cpu"], stream["space"]) for stream in bundle.streams] == [
        (0, 0),
        (3, 0),
    ]  # PIPs name them
    configuration = bundle.configuration
    assert configuration["cpu"] == (6, 61, 4)
    assert (configuration["mtc_period"], configuration["max_nonturbo_ratio"]) == (3, 27)
    assert (configuration["tsc_hz"], configuration["tsc_ctc_ratio"]) == (2_700_000_000, (168, 2))
    assert [(address, size) for address, size, *_ in bundle.code] == [(0x400000, 0x1000), (0x500000, 0x2000)]
    assert bundle.spaces[1] == (100, 0x1A2B3000)
    assert len(bundle.spaces) == 3
    assert ("SIMPLE_PT_LINES_SKIPPED", ("2",)) in codes(bundle)
    missing = json.loads(bundle.metadata)["missing_files"]
    assert [one["path"] for one in missing] == ["/no/such_file"]
    copies = tmp_path / "copies"
    copies.mkdir()
    (copies / "such_file").write_bytes(b"n" * 0x1000)
    assert len(opened(tmp_path, binaries=(str(copies),)).code) == 3


def test_simple_pt_refuses_numbers_that_are_none(tmp_path: Path) -> None:
    (tmp_path / "ptout.0").write_bytes(STREAM)
    bad = [f"1.0 {pid} 1000 1000 0 10\t/x" for pid in (1 << 63, 1 << 64, "-1", "0x1", "1_0")]
    bad += ["1.0 1 0x0x10 1000 0 10\t/x", "1.0 1 1000 1000 0 1_0\t/x"]
    (tmp_path / "ptout.sideband").write_text("\n".join([*bad, f"1.0 {(1 << 63) - 1} 1000 1000 0 10\t/x"]))
    bundle = opened(tmp_path)
    assert ("SIMPLE_PT_LINES_SKIPPED", (str(len(bad)),)) in codes(bundle)
    assert bundle.spaces[1:] == [((1 << 63) - 1, 0x1000)]


@pytest.mark.parametrize("name", ["ptout.1", "ipt_stream_vcpu1", "cpu01_bin.bin"])
def test_links_without_a_file_are_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / name.replace("1", "0")).write_bytes(STREAM)
    (tmp_path / name).symlink_to(tmp_path / "none")
    with pytest.raises(ptkit.OpenError, match=f"{name}: no such file"):
        opened(tmp_path)


def test_simple_pt_takes_exec_for_no_mapping(tmp_path: Path) -> None:
    """The sideband has a line of exec(), and CR3 with the PCID of the moment."""
    program = tmp_path / "program"
    program.write_bytes(b"c" * 0x3000)
    (tmp_path / "ptout.0").write_bytes(STREAM)
    (tmp_path / "ptout.sideband").write_text(
        f"12.0 100 1a2b3000 0 0\t{program}\n12.1 100 1a2b3001 401000 4096 1000\t{program}\n"
        f"12.2 100 1a2b3002 402000 8192 1000\t{program}\n"
    )
    bundle = opened(tmp_path)
    assert codes(bundle) == []
    assert [(address, size) for address, size, *_ in bundle.code] == [(0x401000, 0x1000), (0x402000, 0x1000)]
    assert bundle.spaces == [(None, None), (100, 0x1A2B3000)]


def test_simple_pt_streams_belong_to_the_only_process(tmp_path: Path) -> None:
    (tmp_path / "ptout.0").write_bytes(STREAM)
    (tmp_path / "ptout.sideband").write_text("0.0 100 1a2b3000 400000 0 4096 \t/no/file\nmeta mtc_freq 0\n")
    bundle = opened(tmp_path / "ptout.0")
    assert bundle.format == "simple-pt"
    assert (bundle.streams[0]["space"], bundle.streams[0]["pid"]) == (1, 100)
    assert bundle.configuration["mtc_period"] is None
    bare = tmp_path / "bare"
    bare.mkdir()
    (bare / "ptout.0").write_bytes(STREAM)
    assert codes(opened(bare)) == [("SIMPLE_PT_NO_SIDEBAND", ())]
    assert opened(bare / "ptout.0").format == "raw"  # without sideband: a raw stream


# ---- Xen


def test_xen_sets_what_xen_allows(tmp_path: Path) -> None:
    path = tmp_path / "guest"
    path.write_bytes(STREAM)
    bundle = opened(path, "xen")
    assert bundle.format == "xen"
    assert bundle.configuration["rtit_ctl"] == 0x240D  # TraceEn, OS, User, TSCEn, BranchEn
    assert codes(bundle) == [("XEN_RING_LAPPED", ())]
    piped = readers.open_recording(readers.Source("<pipe>", STREAM), "xen")
    assert (piped.format, bytes_of(piped)) == ("xen", STREAM)
    path.write_bytes(b"x")
    assert "without a PSB packet" in failure_of(path, "xen")


# ---- gdb

GDB_HEAD = (
    '<!DOCTYPE btrace SYSTEM "btrace.dtd">\n<!-- <raw>00</raw> -->\n<btrace version="1.0">\n<pt><pt-config>\n'
    '<cpu vendor="GenuineIntel" family="6" model=\'158\' stepping="10"/></pt-config>\n<raw>'
)


def btrace(path: Path, text: str) -> _core.Bundle:
    path.write_text(text)
    return opened(path)


def test_gdb_documents_hold_processor_trace(tmp_path: Path) -> None:
    path = tmp_path / "a.xml"
    bundle = btrace(path, GDB_HEAD + STREAM.hex() + "\n</raw></pt></btrace>\n")
    assert bundle.format == "gdb-btrace"
    assert bytes_of(bundle) == STREAM
    assert bundle.configuration["cpu"] == (6, 158, 10)
    assert codes(bundle) == []
    assert btrace(path, "l" + GDB_HEAD + STREAM.hex() + "</raw></pt></btrace>").format == "gdb-btrace"
    cut = btrace(path, GDB_HEAD + STREAM.hex())
    assert codes(cut) == [("GDB_BTRACE_CUT", ())]
    assert bytes_of(cut) == STREAM
    long = STREAM + bytes(3 << 20)
    assert bytes_of(btrace(path, GDB_HEAD + long.hex(" ", 30) + "</raw></pt></btrace>")) == long
    amd = btrace(
        path, GDB_HEAD.replace("GenuineIntel", "AuthenticAMD") + STREAM.hex() + "</raw></pt></btrace>"
    )
    assert not amd.configuration["intel"]


def test_gdb_comments_in_bytes(tmp_path: Path) -> None:
    """A tag in a comment opens nothing, though an element is open around it."""
    text = STREAM.hex()
    path = tmp_path / "a.xml"
    for comment in ("<!-- <raw>CD</raw> -->", '<!-- <block begin="0x1" end="0x2"/> -->', "<!-- <raw> -->"):
        for count in (1, 2000):
            bundle = btrace(path, f"<btrace><raw>{text[:20]}{comment * count}{text[20:]}</raw></btrace>")
            assert [bytes_of(bundle, stream) for stream in range(len(bundle.streams))] == [STREAM]


def test_gdb_blocks_become_branches(tmp_path: Path) -> None:
    # The newest block is still running, the oldest has no known begin, and one in between has no end.
    bundle = btrace(
        tmp_path / "b.xml",
        '<btrace version="1.0">\n<block begin="0x60" end="0x0"/>\n<block begin="0x40" end="0x4f"/>\n'
        '<block begin="0x30" end="0x0"/>\n<block begin="0x20" end="0x2f"/>\n'
        '<block begin="0x0" end="0x1e"/></btrace>',
    )
    assert bundle.streams[0]["kind"] == "branch records"
    words = np.frombuffer(bytes_of(bundle), dtype="<u8").reshape(-1, 4)
    rows = [(int(source), int(target), int(flags) & 0xFFFFFFFF) for source, target, _, flags in words]
    assert rows == [(0x1E, 0x20, 16), (0x2F, 0x30, 0), (0x4F, 0x60, 16)]


def test_many_gdb_blocks_are_as_few(tmp_path: Path) -> None:
    blocks = [(number * 16 + 1, number * 16 + 9) for number in range(20_000)]
    text = "".join(f'<block begin="0x{begin:x}" end="0x{end:x}"/>\n' for begin, end in blocks)
    others = {
        "alike": text,
        "one decimal": text.replace('"0x1111"', '"4369"'),
        "other quotes": text.replace('"', "'"),
        "with a comment": text.replace("\n", "<!-- <raw>zz -->\n", 5000),
        "in a comment": f"<!-- {text} -->{text}",
        "another order": text.replace('begin="0x2221" end="0x2229"', 'end="0x2229" begin="0x2221"'),
    }
    for name, one in others.items():
        bundle = btrace(tmp_path / "b.xml", f"<btrace>{one}</btrace>")
        words = np.frombuffer(bytes_of(bundle), dtype="<u8").reshape(-1, 4)
        assert words[:, 1].tolist() == [begin for begin, _ in blocks[-2::-1]], name
        assert words[:, 0].tolist() == [end for _, end in blocks[:0:-1]], name


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("<btrace><raw>0</raw></btrace>", "pairs of hexadecimal digits"),
        ("<btrace><raw>zz</raw></btrace>", "pairs of hexadecimal digits"),
        ("<btrace><block begin='0x1'/></btrace>", "begin and end"),
        ("<btrace><block begin='-1' end='1'/></btrace>", "begin and end"),
        ("<btrace><block begin='0x10000000000000000' end='1'/></btrace>", "begin and end"),
        ("<btrace><block begin='0x0x1' end='1'/></btrace>", "begin and end"),
        ("<btrace><block begin='1_0' end='1'/></btrace>", "begin and end"),
        ("<btrace></btrace>", "neither"),
        ("<other/>", "btrace element"),
        ('<btrace a=b c= ">', "not well-formed (invalid token): line 1, column 10; give"),
        ("<", "btrace element"),
        ("nothing", "btrace element"),
        ("<btrace>" * 200, "nested elements"),
        ('<!DOCTYPE btrace [<!ENTITY a "00">]><btrace><raw>&a;</raw></btrace>', "has an entity"),
        ('<!DOCTYPE btrace SYSTEM "x.dtd"><btrace><raw>&a;</raw></btrace>', "pairs of hexadecimal digits"),
        ('<!DOCTYPE btrace SYSTEM "x.dtd"><btrace><a>&a;</a></btrace>', "has an entity"),
        ('<!DOCTYPE b [<!ENTITY a SYSTEM "/etc/passwd">]><btrace><raw>&a;</raw></btrace>', "has an entity"),
    ],
)
def test_gdb_documents_that_are_refused(text: str, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "x.xml"
    path.write_text(text)
    assert problem in failure_of(path, "gdb-btrace")


def test_entities_are_not_expanded(tmp_path: Path) -> None:
    """Ten to the power of nine copies of a text."""
    names = [f'<!ENTITY e{number} "{f"&e{number - 1};" * 10}">' for number in range(1, 10)]
    path = tmp_path / "x.xml"
    path.write_text(f'<!DOCTYPE btrace [<!ENTITY e0 "00">{"".join(names)}]><btrace><raw>&e9;</raw></btrace>')
    assert "has an entity" in failure_of(path, "gdb-btrace")


# ---- DRAKVUF

CR3, TID, EVENT, NO_DATA = 0xC3000000, 0x1D000000, 0xCC000000, 0xBAD10000
FIRST, SECOND = 0x1_0000_A000, 0x2_0000_B000
LOG = r"""
{"EventType":"execframe","CR3":"0x10000a000","PageVA":"0x1000","TrapPA":"0x9123","PID":4,"TID":11,"ProcessName":"\\Device\\calc.exe","DumpFile":"/tmp/one"}
{"EventType":"pagefault","CR3":"0x20000b000","VA":"0x1234","PA":"0x9234","PID":8,"TID":22,"ProcessName":"b.exe"}
{"EventType":"pagefault","CR3":"0x20000b000","VA":"0x5234","PA":"0x9234"}
{"EventType":"execframe","CR3":"0x10000a000","PageVA":"0xfffff80000001000","TrapPA":"0x1000","DumpFile":"kernel"}
{"EventType":"execframe","CR3":"0x10000a000","PageVA":"0x2000","TrapPA":"0x8000","DumpFile":"cut"}
{"EventType":"execframe","CR3":"0x10000a000","PageVA":"0x3000","TrapPA":"0x7000","DumpFile":"(null)"}
{"Plugin":"execframe","CR3":4294975488,"FrameVA":"0x4000","TrapPA":"0x6000","FrameFile":"x/frame_00001"}
{"EventType":"execframe","CR3":"0x10000a000","TrapPA":"0x6000","DumpFile":"one"}
not "CR3" JSON
"""


def ptw(command: int, data: int) -> bytes:
    return b"\x02\x32" + struct.pack("<II", data, command)


def pip(cr3: int) -> bytes:
    return b"\x02\x43" + (cr3 >> 5 << 1).to_bytes(6, "little")


# Two processes in turn. Marks have 32 bits of CR3, PIPs have 64.
GUEST = (
    PSB
    + ptw(CR3, 0xA000)
    + ptw(TID, 11)
    + pip(FIRST)
    + ptw(EVENT, 0x77)
    + ptw(CR3, 0xB000)
    + ptw(TID, 22)
    + pip(SECOND)
)


def switches_of(bundle: _core.Bundle, path: Path) -> list[tuple[int, int | None, int | None]]:
    """Offset, TID and CR3 of each switch, as the rows of the packets of the stream show it."""
    table = ptkit.open(path, cpu="6/142/9").packets(columns=["offset", "tid", "tid_known", "space"])
    rows: list[tuple[int, int | None, int | None]] = []
    for offset, tid, known, space in zip(
        *(table[name].tolist() for name in ("offset", "tid", "tid_known", "space")), strict=True
    ):
        row = (tid if known and tid >= 0 else None, bundle.spaces[space][1])
        if not rows or rows[-1][1:] != row:
            rows.append((offset, *row))
    return rows


def test_drakvuf_marks_become_switches(tmp_path: Path) -> None:
    for name in ("ipt_stream_vcpu0", "ipt_stream_vcpu12"):
        (tmp_path / name).write_bytes(GUEST)
    (tmp_path / "ipt_stream_vcpu3").write_bytes(b"")
    (tmp_path / "ipt_stream_vcpuX").write_bytes(b"other")
    bundle = opened(tmp_path)
    assert bundle.format == "drakvuf"
    assert [(stream["cpu"], stream["switches"]) for stream in bundle.streams] == [(0, 2), (12, 2)]
    assert bundle.spaces == [(None, None), (None, FIRST), (None, SECOND)]
    assert bundle.configuration["rtit_ctl"] == 0x280D  # TraceEn, OS, User, DisRETC, BranchEn
    assert codes(bundle) == []
    rows = switches_of(bundle, tmp_path / "ipt_stream_vcpu0")
    assert rows == [(0, None, None), (16, 11, FIRST), (54, 22, SECOND)]


def test_drakvuf_streams_are_recognised_by_marks(tmp_path: Path) -> None:
    (tmp_path / "renamed").write_bytes(GUEST)
    (tmp_path / "plain").write_bytes(STREAM)
    (tmp_path / "program").write_bytes(PSB + ptw(0x12345678, 1))  # PTWRITE of the guest
    assert [opened(tmp_path / name).format for name in ("renamed", "plain", "program")] == [
        "drakvuf",
        "raw",
        "raw",
    ]
    (tmp_path / "a" / "ipt").mkdir(parents=True)
    (tmp_path / "a" / "ipt" / "ipt_stream_vcpu0").write_bytes(STREAM)
    assert opened(tmp_path / "a").format == "drakvuf"


def test_drakvuf_keeps_half_of_a_cr3(tmp_path: Path) -> None:
    path = tmp_path / "ipt_stream_vcpu0"
    path.write_bytes(PSB + ptw(CR3, 0xC123) + b"\0" * 4 + ptw(TID, 5) + b"\0" * 4)
    bundle = opened(path)
    assert bundle.spaces[1:] == [(None, 0xC000)]
    assert switches_of(bundle, path) == [(0, None, None), (16, None, 0xC000), (30, 5, 0xC000)]


def test_drakvuf_finds_marks_in_bytes_without_packets(tmp_path: Path) -> None:
    path = tmp_path / "ipt_stream_vcpu0"
    # The ring wrapped: no packet begins with 02 ff.
    path.write_bytes(
        GUEST
        + b"\x02\xff\x02\xff"
        + ptw(CR3, 0xA000)
        + ptw(TID, 33)
        + b"\x02\xff\x02\x32"
        + PSB
        + ptw(NO_DATA, 0)
    )
    bundle = opened(path)
    assert bundle.streams[0]["switches"] == 3
    assert bundle.spaces[1:] == [(None, FIRST), (None, SECOND)]
    assert codes(bundle) == [("DRAKVUF_EVENTS_UNTRACED", ("1",))]


def test_drakvuf_rejects_lines_as_a_whole(tmp_path: Path) -> None:
    (tmp_path / "ipt_stream_vcpu0").write_bytes(GUEST)
    (tmp_path / "codemon.log").write_text(
        '{"EventType":"execframe","CR3":"0x10000a000","PID":4,"TID":11,"ProcessName":"calc.exe",'
        '"TrapPA":"0x6000","DumpFile":"one"}\n'
        '{"CR3": true, "PID": 4}\n{"CR3": 1.5}\n["CR3"]\n{"CR3": "0x1", "PID": "4"}\n'
        f'{{"CR3": "0x1", "a": {"[" * 101 + "]" * 101}}}\n{{"CR3": 1, "a": "{"x" * 70_000}"}}\n'
    )
    bundle = opened(tmp_path)
    assert codes(bundle) == [("DRAKVUF_LINES_SKIPPED", ("7",))]
    assert bundle.threads == []
    assert all(pid is None for pid, _ in bundle.spaces)


def test_drakvuf_reads_each_line_alone(tmp_path: Path) -> None:
    """Lines that are objects only together, or several."""
    path = tmp_path / "ipt_stream_vcpu0"
    path.write_bytes(PSB)
    log = tmp_path / "codemon.log"
    log.write_text(
        '{"a":{"CR3":"0x1000"}\n"CR3":"0x2000","PID":7}\n{"CR3":"0x3000","PID":3},{"CR3":"0x4000","PID":4}\n'
    )
    bundle = opened(tmp_path)
    assert codes(bundle) == [("DRAKVUF_LINES_SKIPPED", ("3",))]
    assert bundle.spaces == [(None, None)]
    for lines in (
        '{"CR3": "}\n{", "CR3": "0x1000", "PID": 1}\n',
        '{"CR3": "0x0x10"}\n{"CR3": "1_0"}\n',
        '{"CR3": "+1"}\n{"CR3": " 1"}\n',
    ):
        log.write_text(lines + '{"CR3": "0x5000", "PID": 5}\n{"CR3": "0x5000", "PID": 6, "a": [{}]}\n')
        bundle = opened(tmp_path)
        assert codes(bundle) == [("DRAKVUF_LINES_SKIPPED", ("2",)), ("DRAKVUF_CR3_REUSED", ("1",))], lines
        assert bundle.spaces == [(None, None), (5, 0x5000)]


def test_drakvuf_names_that_cannot_be_encoded_or_lead_away(tmp_path: Path) -> None:
    (tmp_path / "ipt_stream_vcpu0").write_bytes(PSB)
    (tmp_path / "dumps").mkdir()
    for name in ("C:one", "two"):
        (tmp_path / "dumps" / name).write_bytes(b"1" * 4096)
    row = '{{"EventType":"execframe","CR3":"0x1000","PageVA":{0},"TrapPA":{0},"DumpFile":"{1}"}}\n'
    names = ("C:one", "a\\u0000b", "\\ud800", "x/two")
    log = '{"CR3": "0x1000", "PID": 1, "TID": 2, "ProcessName": "\\ud800"}\n'
    log += "".join(row.format(number << 12, name) for number, name in enumerate(names, 1))
    (tmp_path / "codemon.log").write_text(log)
    bundle = opened(tmp_path)
    assert bundle.threads == [(1, 2, "?")]
    assert [address for address, *_ in bundle.code] == [0x4000]
    assert codes(bundle) == [("DRAKVUF_PAGES_MISSING", ("3",))]


def test_drakvuf_maps_saved_pages(tmp_path: Path) -> None:
    folder = tmp_path / "ipt"
    (folder / "dumps").mkdir(parents=True)
    (folder / "frames").mkdir()
    (folder / "ipt_stream_vcpu0").write_bytes(GUEST)
    for name, letter, size in (("one", b"1", 4096), ("kernel", b"k", 4096), ("cut", b"c", 4000)):
        (folder / "dumps" / name).write_bytes(letter * size)
    (folder / "frames" / "frame_00001").write_bytes(b"f" * 4096)
    (tmp_path / "codemon.log").write_text(LOG)
    bundle = opened(tmp_path)
    # The second process has the same frame at the same address. The frame was saved once.
    assert [(at, size, bundle.spaces[space]) for at, size, _, space, _ in bundle.code] == [
        (0x1000, 4096, (4, FIRST)),
        (0xFFFFF80000001000, 4096, (None, None)),
        (0x4000, 4096, (None, 0x100002000)),
        (0x1000, 4096, (8, SECOND)),
    ]
    assert bundle.threads == [(4, 11, "calc.exe"), (8, 22, "b.exe")]
    assert codes(bundle) == [("DRAKVUF_LINES_SKIPPED", ("2",)), ("DRAKVUF_PAGES_MISSING", ("1",))]
    with pytest.warns(ptkit.PtkitWarning):
        trace = ptkit.open(tmp_path, cpu="6/142/9")
    assert len(trace.packets(pid=8)) > 0


def test_drakvuf_folders_without_streams(tmp_path: Path) -> None:
    assert "found none" in failure_of(tmp_path, "drakvuf")
    (tmp_path / "ipt_stream_vcpu0").write_bytes(b"")
    assert "all streams are empty" in failure_of(tmp_path, "drakvuf")


# ---- readers that packages add


class _Entry:
    def __init__(self, value: Any) -> None:
        self.value = value

    def load(self) -> Any:
        if isinstance(self.value, Exception):
            raise self.value
        return self.value


def _read_plain(source: readers.Source) -> _core.Bundle:
    recording = readers.new_recording()
    data = Path(source.path).read_bytes() if source.data is None else bytes(source.data)
    recording.add_stream(data[8:], name=os.fsencode(source.path), cpu=3)
    return recording


@pytest.fixture
def added(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Adds readers as entry points of other packages."""
    from ptkit.readers import registry

    def add(*found: Any) -> None:
        monkeypatch.setattr("importlib.metadata.entry_points", lambda group: [_Entry(one) for one in found])
        registry._added.cache_clear()

    yield add
    registry._added.cache_clear()


def test_packages_add_readers(added: Any, tmp_path: Path) -> None:
    mine = readers.Reader(
        "mine", "a header and a stream", _read_plain, lambda source: source.head(4) == b"MINE"
    )
    other = readers.Reader("raw", "takes ptkit's name", _read_plain, lambda source: True)
    added(mine, other, "no reader", ImportError("broken"))
    path = tmp_path / "a.mine"
    path.write_bytes(b"MINE0000" + STREAM)
    assert opened(path).format == "mine"
    assert opened(path).streams[0]["cpu"] == 3
    assert bytes_of(opened(path)) == STREAM
    assert opened(path, "mine").format == "mine"
    assert opened(path, "raw").format == "raw"
    assert [name for name, _, _ in readers.formats()][-2:] == ["mine", "raw"]
    path.write_bytes(STREAM)
    assert opened(path).format == "raw"


def test_readers_of_packages_are_tried_before_the_format_that_they_name(added: Any, tmp_path: Path) -> None:
    for name in ("trace", "page_cache.addr", "page_cache.dump"):
        (tmp_path / name).write_bytes(STREAM if name == "trace" else b"")
    assert opened(tmp_path).format == "libxdc"

    def read(source: readers.Source) -> _core.Bundle:
        recording = readers.new_recording()
        recording.add_stream(STREAM, name=os.fsencode(source.path))
        return recording

    for before, order in (
        ("libxdc", "mine libxdc"),
        ("raw", "mine raw"),
        ("ptk", "mine raw"),
        ("no", "mine raw"),
    ):
        added(readers.Reader("mine", "any folder", read, lambda source: source.is_folder, before))
        assert opened(tmp_path).format == ("mine" if before == "libxdc" else "libxdc"), before
        assert order in " ".join(name for name, _, _ in readers.formats()), before


def test_bundles_are_opened_without_readers_of_packages(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """They begin with a magic, and to look for readers takes longer than to open a small one."""
    path = tmp_path / "stream.pt"
    path.write_bytes(STREAM)
    ptkit.open(path, cpu="6/142/9").save(tmp_path / "a.ptk")
    monkeypatch.setattr("ptkit.readers.registry._added", lambda: pytest.fail("looked for readers"))
    assert opened(tmp_path / "a.ptk").format == "ptk"
