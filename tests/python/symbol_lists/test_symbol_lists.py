"""Lists of symbols of each kind, as the tools print them, and texts that are none."""

from __future__ import annotations

import contextlib
import gzip
import json
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ptkit
from ptkit.support.columns import Words, hex_numbers
from ptkit.symbol_lists import find_symbols, read_symbol_list
from ptkit.symbol_lists.found import FoundList


def read(text: str | bytes) -> FoundList:
    return find_symbols("list", text.encode() if isinstance(text, str) else text)


def failure_of(text: str | bytes) -> str:
    with pytest.raises(ptkit.FormatError) as refused:
        find_symbols("the list", text.encode() if isinstance(text, str) else text)
    assert str(refused.value).startswith("the list: ")
    return str(refused.value)


def symbols_of(text: str | bytes) -> list[tuple[str, int, int]]:
    """Name, address and size of each symbol."""
    contents = text.encode() if isinstance(text, str) else text
    found = read(contents)
    names = contents if found.names is None else found.names
    rows = zip(*(column.tolist() for column in found.symbols.columns()), strict=True)
    return [(names[begin:end].decode(), address, size) for begin, end, address, size in rows]


def short(text: str | bytes) -> str:
    """``main 1139, foo(int) 1150 +16``: names, addresses, sizes."""
    return ", ".join(f"{name} {at:x}" + (f" +{size}" if size else "") for name, at, size in symbols_of(text))


def test_output_of_nm() -> None:
    text = (
        "a.out:\n                 w __gmon_start__\n                 U puts@GLIBC_2.2.5\n"
        "0000000000001139 T main\n0000000000001150 t foo(int, char)\t/src/a.c:7\n0000000000004010 B data\n"
        "0000000000001170 W weak@@VERS_1\n0000000000001180 b not_code\n"
    )
    assert read(text).kind == "output of nm"
    assert short(text) == "main 1139, foo(int, char) 1150, weak 1170"
    assert not read(text).at_run_time


def test_other_formats_of_nm() -> None:
    sized = "0000000000001139 0000000000000022 T main\n0000000000001160 t small\n"
    assert read(sized).kind == "output of nm"
    assert short(sized) == "main 1139 +34, small 1160"
    posix = "main T 1139 22\nputs U         \n_init T 1000\ndata D 4010 4\n"
    assert read(posix).kind == "output of nm -P"
    assert short(posix) == "main 1139 +34, _init 1000"
    table = (
        "\nSymbols from a.out:\n\nName                  Value           Class        Type         Size      "
        "Line  Section\n\nmain                |0000000000001139|   T  |            FUNC|0000000000000022|    "
        "|.text\nputs                |                |   U  |          NOTYPE|                |    |*UND*\n"
    )
    assert read(table).kind == "output of nm -f sysv"
    assert short(table) == "main 1139 +34"


def test_nm_of_32_bit_programs() -> None:
    assert short("08049176 T main\n0804c000 d data\n00401010 T _work@8\n") == "main 8049176, _work@8 401010"


def test_signs_in_names() -> None:
    text = (
        "0000000000001000 T a@V1\n0000000000001010 T b@@V2\n0000000000001020 T ?c@@YAHXZ\n"
        "0000000000001030 T d@@@V3@x\n0000000000001040 T @e\n0000000000001050 T f@@\n"
    )
    assert short(text) == "a 1000, b 1010, ?c@@YAHXZ 1020, d 1030, @e 1040, f@@ 1050"


def test_lists_of_kernels() -> None:
    built = "0000000000000000 D __per_cpu_start\nffffffff81000000 T _text\nffffffff81000040 t start\n"
    assert short(built) == "_text ffffffff81000000, start ffffffff81000040"
    assert read(built).linked_base == 0xFFFFFFFF81000000
    assert not read(built).at_run_time
    live = "ffffffff9e000000 T _text\nffffffffc0123000 t work\t[e1000]\n"
    assert short(live) == "_text ffffffff9e000000, work ffffffffc0123000"
    assert read(live).at_run_time
    assert "kptr_restrict" in failure_of("0000000000000000 T _text\n0000000000000000 t start\n")


def test_maps_of_jit_code() -> None:
    text = "7f3001000 b LazyCompile:~f a.js:1\n0x7f3002000 120 py::g:/x.py\n"
    assert short(text) == "LazyCompile:~f a.js:1 7f3001000 +11, py::g:/x.py 7f3002000 +288"
    assert read(text).at_run_time
    # .NET and the JVM have blanks in names, .NET capitals and leading zeros in addresses.
    assert short(
        "00007F3001000000 1a void [app] App::Main(string[])[Tier0]\r\n"
        "00007F3002000000 b void [app] App::F()[Tier1]\r\n"
    ) == (
        "void [app] App::Main(string[])[Tier0] 7f3001000000 +26, void [app] App::F()[Tier1] 7f3002000000 +11"
    )


def test_blanks_in_maps_of_jit_code() -> None:
    text = " 7f10 2f g\n7f20\t1\th\r\n0X7f30 0X10 i\n7f40  2f  j  k \t\n0x0x50 1 l\n# 7f60 1 m\n7f70 1\n"
    assert read(text).kind == "map of JIT code by perf"
    assert short(text) == "g 7f10 +47, h 7f20 +1, i 7f30 +16, j  k 7f40 +47"
    for line in text.splitlines()[:4]:
        assert len(symbols_of(line)) == 1, line


def test_pairs() -> None:
    text = "# address name\n0x401000 main\n0x401010 sub_401010\n"
    assert short(text) == "main 401000, sub_401010 401010"


LINKER_MAP = (
    " DllTwo\r\n\r\n Timestamp is 4956e425 (Sun Dec 28 10:27:49 2008)\r\n\r\n"
    " Preferred load address is 0000000180000000\r\n\r\n"
    " Start         Length     Name                   Class\r\n"
    " 0001:00000000 00000da6H .text$mn                CODE\r\n 0001:00000db0 00000053H .text$x  CODE\r\n"
    " 0002:00000000 000000e8H .idata$5                DATA\r\n\r\n"
    "  Address         Publics by Value              Rva+Base               Lib:Object\r\n\r\n"
    " 0000:00000003       ___safe_se_handler_count   0000000000000003     <absolute>\r\n"
    " 0001:00000010       ?f@@YAHXZ                  0000000180001010 f   a.obj\r\n"
    " 0002:00000010       data                       0000000180003010     a.obj\r\n\r\n"
    " entry point at        0001:00000010\r\n\r\n Static symbols\r\n\r\n"
    " 0001:00000020       helper                     0000000180001020 f   a.obj\r\n"
)


def test_maps_of_linkers() -> None:
    found = read(LINKER_MAP)
    assert found.kind == "map of a linker"
    assert short(LINKER_MAP) == "?f@@YAHXZ 180001010, helper 180001020"
    assert (found.linked_base, found.module, found.segments) == (0x180000000, b"DllTwo", [])


def test_names_of_modules_may_begin_as_headings_do() -> None:
    for name in ("StartMenu.exe", "Addresses", "Preferred"):
        assert read(LINKER_MAP.replace("DllTwo", name)).module == name.encode()


def test_numbers_of_maps_have_one_prefix() -> None:
    assert read(LINKER_MAP.replace("is 0000000180000000", "is 0X180000000")).linked_base == 0x180000000
    assert read(LINKER_MAP.replace("is 0000000180000000", "is 0x0x18000000")).linked_base is None
    assert failure_of(LINKER_MAP.replace("da6H", "_a6H").replace("053H", "_53H")).endswith(
        "without a function"
    )


def test_maps_of_ida() -> None:
    text = (
        "\n Start         Length     Name                   Class\n 0001:00000000 000001800H .text   CODE\n"
        " 0002:00000000 000000100H INIT                   CODE\n 0003:00000000 000000100H .data   DATA\n\n\n"
        "  Address         Publics by Value\n\n 0001:00000010       sub_11010\n 0002:00000004       "
        "DriverEntry\n 0003:00000008       datum\n\n Program entry point at 0002:00000004\n"
    )
    found = read(text)
    assert found.kind == "map of IDA or Delphi"
    assert short(text) == "sub_11010 1010, DriverEntry 3004"
    assert found.linked_base == 0
    assert [segment[:2] for segment in found.segments] == [
        (b".text", 0x1000),
        (b"INIT", 0x3000),
        (b".data", 0x4000),
    ]


def test_maps_with_begins_of_segments() -> None:
    delphi = (
        " Start         Length     Name                   Class\n 0001:00401000 00050F4CH .text  CODE\n\n"
        "  Address         Publics by Name\n\n 0001:00000024       twice\n\n"
        "  Address         Publics by Value\n\n 0001:00000024       System.Halt\n"
    )
    assert short(delphi) == "System.Halt 401024"
    assert read(delphi).linked_base == 0x400000
    absolute = (
        " Start              Length     Name   Class\n 0001:0000000140001000 000001000H .text  CODE\n\n"
        "  Address         Publics by Value\n\n 0001:0000000140001024       main\n"
    )
    assert short(absolute) == "main 140001024"
    assert read(absolute).linked_base == 0x140000000


def test_maps_of_gnu_ld() -> None:
    text = (
        "Archive member included\n\nDiscarded input sections\n\n .note 0x0000000000000000 0x20 crt1.o\n\n"
        "Memory Configuration\n\nName Origin Length\n*default* 0x0 0xffffffffffffffff\n\n"
        "Linker script and memory map\n\n"
        "                0x0000000000400000                PROVIDE (__executable_start = SEGMENT_START "
        '("text", 0x400000))\n'
        ".interp         0x00000000004002a8       0x1c\n                0x00000000004002a8                "
        "not_code\n"
        ".text           0x0000000000401040      0x1a5\n *(.text.unlikely)\n"
        " .text          0x0000000000401040       0x26 crt1.o\n"
        "                0x0000000000401040                _start\n"
        " .text.a_long_name_of_a_section\n                0x0000000000401139       0x22 main.o\n"
        "                0x0000000000401139                ns::f(int)\n"
        "                0x0000000000402000                . = ALIGN (0x1000)\n"
        "                0x0000000000402000                etext = .\n"
        " *fill*         0x0000000000402000        0x4 \n"
        ".data           0x0000000000404000        0x4\n                0x0000000000404000                "
        "datum\n"
    )
    assert read(text).kind == "map of GNU ld"
    assert short(text) == "_start 401040, ns::f(int) 401139"
    assert read(text).linked_base == 0x400000


WINDBG_LOG = (
    "0: kd> lm f\nstart             end                 module name\n"
    "fffff803`61a00000 fffff803`62a46000   nt       \\SystemRoot\\system32\\ntoskrnl.exe\n"
    "fffff806`85380000 fffff806`85450000   srv2       (pdb symbols)          C:\\sym\\srv2.pdb\n"
    "    Image name: srv2.sys\n\nUnloaded modules:\nfffff806`10000000 fffff806`10010000   old.sys\n"
    "0: kd> x srv2!*\n"
    "fffff806`85389310 srv2!Srv2ProcessPacket (<no parameter info>)\n"
    "fffff806`85389400 srv2!Other = <no type information>\n"
    "fffff806`853a0000 srv2!g_count = 0n7\n"
    "fffff806`85389500 srv2!std::map<int,char>::at (class X *, int)\n"
)


def test_logs_of_windbg() -> None:
    found = read(WINDBG_LOG)
    assert found.kind == "output of WinDbg"
    assert short(WINDBG_LOG) == (
        "Srv2ProcessPacket fffff80685389310, Other fffff80685389400, std::map<int,char>::at fffff80685389500"
    )
    assert found.at_run_time
    assert found.modules == [
        (b"\\SystemRoot\\system32\\ntoskrnl.exe", 0xFFFFF80361A00000, 0xFFFFF80362A46000),
        (b"srv2.sys", 0xFFFFF80685380000, 0xFFFFF80685450000),
    ]


def test_profiles() -> None:
    isf = (
        '{"metadata": {"windows": {"pdb": {"GUID": "3F2504E04F8911D39A0C0305E82C3301", "age": 26, '
        '"database": "ntkrnlmp.pdb"}}}, "base_types": {"symbols": {"x": {"address": 1}}}, '
        '"symbols": {"NtCreateFile": {"address": 4096, "type": {"address": 7}}, "none": {}}}'
    )
    found = read(isf)
    assert (found.kind, found.module, found.linked_base) == ("Volatility ISF", b"ntkrnlmp.pdb", 0)
    assert (found.guid, found.age) == (b"3F2504E04F8911D39A0C0305E82C3301", 26)
    assert short(isf) == "NtCreateFile 1000"
    rekall = (
        '{"$CONSTANTS": {"f": 16, "text": "x"},\n "$FUNCTIONS": {"g": 32}, "$METADATA": '
        '{"PDBFile": "srv2.pdb"}, "$STRUCTS": {"s": [8, {"a": [0, ["int"]]}]}}'
    )
    assert (read(rekall).kind, read(rekall).module) == ("Rekall profile", b"srv2.pdb")
    assert short(rekall) == "f 10, g 20"
    linux = '{"symbols": {"_text": {"address": 18446744071578845184}}}'
    assert read(linux).linked_base == 0xFFFFFFFF81000000


def test_texts_of_profiles_that_cannot_be_encoded() -> None:
    text = (
        '{"metadata": {"windows": {"pdb": {"GUID": "\\ud800", "age": 1, "database": "\\udfff.pdb"}}}, '
        '"symbols": {"\\ud800": {"address": 4096}}}'
    )
    found = read(text)
    assert (found.guid, found.module, short(text)) == (b"?", b"?.pdb", "? 1000")
    assert read_symbol_list("a.json", text.encode()).kind == "Volatility ISF"


def test_nameless_members_of_profiles() -> None:
    assert short('{"$FUNCTIONS": {"": 32, "f": 16}}') == "f 10"
    assert short('{"$FUNCTIONS": [32, 33], "$CONSTANTS": {"g": 1}}') == "g 1"
    assert "is JSON without symbols" in failure_of('{"$METADATA": {}, "$FUNCTIONS": {"": 32}}')


def test_profiles_that_are_cut_into_parts() -> None:
    rows = {f'n"\\{number}{{[,': {"address": number, "type": {"a": [1, "}"]}} for number in range(60_000)}
    fields = {"s": [8, {"a": [0, ["int"]]}], "x": "a, b", "y": None}
    text = json.dumps(
        {"version": 1, "symbols": rows, "none": {}, "z": 2, "w": "}", "types": fields, "q": [1, 2]}
    )
    assert len(text) > 2 << 20
    assert [(name, at) for name, at, _ in symbols_of(text)] == [
        (name, one["address"]) for name, one in rows.items()
    ]


@pytest.mark.parametrize(
    "text",
    [
        '{"symbols": {"f": {"address": 4096}',
        '{"symbols": {"f": {"address": 4096}}} more',
        '{"symbols": {"f": {"address": 4096}}, }',
        '{, "symbols": {"f": {"address": 4096}}}',
        '{"a": 1 "symbols": {"f": {"address": 4096}}}',
        '{"symbols": {"f": {"address": 4096},}}',
        '{"symbols": {"f": {"address": 4096}]}',
        '{"symbols" {"f": {"address": 4096}}}',
        '{"symbols": {"f": {"address": NaN}}}',
        '{"symbols": {"f": {"address": 4096}} "a": {}}',
        '{"symbols": {"f": {"address": 4096}}, 7: {}}',
        '{"symbols": {"f": {"address": 4096}}, "a": {} {}}',
    ],
)
def test_damaged_profiles(text: str) -> None:
    with pytest.raises(json.JSONDecodeError):
        json.loads(text, parse_constant=lambda name: json.loads(name.lower()))
    assert "is no JSON at byte" in failure_of(text)


def test_members_of_profiles_have_a_limit() -> None:
    assert "outer members" in failure_of("{" + ",".join(f'"{n}": {{}}' for n in range(20_000)) + "}")
    assert "a member of" in failure_of('{"symbols": {"f": [' + "0," * (9 << 20) + "0]}}")


def test_other_files_are_described() -> None:
    assert "is an empty file and no list of symbols that ptkit knows; give the output of nm" in failure_of("")
    assert "is a text file and no list" in failure_of("what is this\nno list of symbols\nat all\n")
    assert "give it as an image" in failure_of(b"\x7fELF\0\0")
    assert "is a PDB of Visual C++ 6 or older" in failure_of("Microsoft C/C++ program database 2.00\r\n\x1a")
    assert "is JSON without symbols" in failure_of('{"a": {"b": 1}}')
    assert "is no JSON at byte" in failure_of('{"symbols": {"f": {"address": 4096}')
    assert "lists no function" in failure_of("                 U puts\n0000000000004010 D datum\n")
    assert "no list" in failure_of(b"0000000000001139 T main\n\0\n")


def test_parts_of_a_long_text_are_as_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [
        "".join(f"{number:016x} T f{number}@@V1\n" for number in range(1, 500)),
        LINKER_MAP,
        WINDBG_LOG,
        "Linker script and memory map\n.text 0x10 0x20\n                0x10  f\n.data 1\n   0x20 g\n"
        ".plt\n   0x30 h\n",
    ]
    whole = [short(text) for text in texts]
    monkeypatch.setattr("ptkit.support.columns.CHUNK_BYTES", 100)
    assert [short(text) for text in texts] == whole


def test_lines_longer_than_a_part_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ptkit.support.columns.CHUNK_BYTES", 64)
    long = f"{2:016x} T {'g' * 100}"
    assert short(f"{1:016x} T f\n{long}\n{3:016x} T h\n{long}") == "f 1, h 3"


@settings(deadline=None)
@given(st.lists(st.text("0123456789abcdefABCDEFxX gh", max_size=19), max_size=8))
def test_numbers(words: list[str]) -> None:
    text = np.frombuffer("".join(words).encode(), dtype=np.uint8)
    ends = np.cumsum([len(word) for word in words], dtype=np.int64)
    begins = ends - [len(word) for word in words] if words else ends
    values, good = hex_numbers(text, begins, ends)
    for word, value, is_number in zip(words, values.tolist(), good.tolist(), strict=True):
        digits = word[2:] if word[:2].lower() == "0x" else word
        expected = 0 < len(digits) <= 16 and all(letter in "0123456789abcdefABCDEF" for letter in digits)
        assert is_number == expected, word
        assert value == (int(digits, 16) if expected else 0)


@settings(deadline=None)
@given(st.text(" \t\r\nab|", max_size=80))
def test_words(text: str) -> None:
    words = Words(np.frombuffer(text.encode(), dtype=np.uint8))
    lines = [line.split() for line in text.replace("\r", " ").split("\n") if line.split()]
    found = [
        [words.bytes_of(words.begin[word], words.end[word]).decode() for word in range(first, first + count)]
        for first, count in zip(words.first, words.count, strict=True)
    ]
    assert found == lines


_TEXTS = [
    LINKER_MAP.encode(),
    WINDBG_LOG.encode(),
    b"0000000000001139 T main\nffffffff81000000 t x\t[m]\n7f00 2f f\n",
    b"main T 1139 22\nputs U\nf@@V t 10\n",
    b"main                |0000000000001139|   T  |              FUNC|0000000000000022|     |.text\n",
    b"7f00 2f f\n0x7f10 2f g\n",
    b'{"symbols": {"f": {"address": 4096}}, "$CONSTANTS": {"g": 1}, "metadata": {"w": {"pdb": {"age": 1}}}}',
    b"Linker script and memory map\n.text 0x10 0x20\n                0x10  f\n   0x20  __ehdr_start = .\n",
]


@settings(max_examples=400, deadline=None)
@given(
    st.sampled_from(_TEXTS),
    st.lists(st.tuples(st.integers(0, 1 << 20), st.integers(0, 255)), max_size=4),
    st.integers(0, 1 << 20) | st.none(),
    st.binary(max_size=8),
)
def test_changed_bytes_are_read_or_refused(
    text: bytes, changes: list[tuple[int, int]], cut: int | None, more: bytes
) -> None:
    changed = bytearray(text)
    for at, value in changes:
        changed[at % len(changed)] = value
    contents = bytes(changed[: cut % len(changed)] if cut is not None else changed) + more
    began = time.process_time()
    try:
        found = find_symbols("perf-7.map", contents)
    except ptkit.FormatError:
        return
    finally:
        assert time.process_time() - began < 2
    begin, end, addresses, sizes = found.symbols.columns()
    names = contents if found.names is None else found.names
    assert len(begin) == len(addresses) == len(sizes)
    assert (begin < end).all()
    assert not len(end) or (begin.min() >= 0 and end.max() <= len(names))
    assert len(begin) or found.modules


_HOSTILE = {
    "one word": b"a" * (8 << 20),
    "blanks": b" " * (8 << 20),
    "short lines": b"a\n" * (4 << 20),
    "short words": b"a " * (4 << 20),
    "signs": b"0000000000001139 T f" + b"@" * (8 << 20),
    "lines of signs": b"0000000000001139 T f@@@@@@@@@@@\n" * 200_000,
    "begins": b"ffffffff81000000 T _text\n" * 200_000,
    "headings": b"Publics by Value Class\n" + b"Start Class\n" * 300_000,
    "load addresses": b"Publics by Value Class\n" + b"Preferred load address is 1\n" * 300_000,
    "segments": b"Publics by Value\n Start Length Name Class\n"
    + b"0001:00000000 1000H .text CODE\n" * 200_000,
    "sections": b"Linker script and memory map\n" + b"text\n" * 1_000_000,
    "assignments": b"Linker script and memory map\n" + b"  0x10 a = b\n" * 300_000,
    "modules": b"start end module name!\n" + b"00000000`00000001 00000000`00000002 m\n" * 100_000,
    "nesting": b'{"symbols":' + b"[" * 1_000_000,
    "quotes": b'{"' + b'\\"' * (4 << 20),
    "values": b"{" + b'"a":1,' * 1_000_000 + b'"a":1}',
    "members": b'{"symbols": {' + b'"a":{"address":1},' * 300_000 + b'"b":{"address":2}}}',
}


@pytest.mark.parametrize("name", _HOSTILE)
def test_time_is_bounded(name: str) -> None:
    began = time.process_time()
    with contextlib.suppress(ptkit.FormatError):
        find_symbols("list", _HOSTILE[name])
    assert time.process_time() - began < 1 + len(_HOSTILE[name]) / 1_000_000


def test_lists_for_the_core() -> None:
    assert read_symbol_list("/tmp/perf-4711.map", b"7f3001000 1b f\n").kind == "map of JIT code by perf"
    with pytest.raises(ptkit.FormatError, match=r"perf-x\.map: is a text file"):
        read_symbol_list("perf-x.map", b"none\n")


def test_profile_with_a_byte_order_mark(tmp_path: Path, open_trace: object) -> None:
    path = tmp_path / "f.json.gz"
    path.write_bytes(gzip.compress(b'\xef\xbb\xbf{"symbols": {"f": {"address": 4096}}}'))
    trace = open_trace(b"\x02\x82" * 8, symbols=[(path, 0x10000)])  # type: ignore[operator]
    assert trace.symbols("f") == [("f", 0x11000, 1 << 20)]
