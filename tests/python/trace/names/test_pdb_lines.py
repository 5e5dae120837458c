"""Source lines and inlined functions of Windows programs from their PDBs."""

from __future__ import annotations

import ntpath
import os
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pdb_dump
import pytest
from inlining_sources import LOOP, inlining_sources
from symbolizers import Chain, reference_chains
from warned import of_code, trace_warnings, warned
from windows_programs import LOAD, WindowsProgram, dwarf_twin, instructions, windows_program

import ptkit
from ptkit.cli import main

CPU = "6/142/9"
X64 = "x86_64-w64-windows-gnu"
X86 = "i686-w64-windows-gnu"

CLASSES = {
    "loop.c": f"__attribute__((naked)) int start(void) {{\n{LOOP}\n}}\n",
    "classes.cpp": """\
namespace ns {
template <class T> struct Box {
  T value;
  __attribute__((always_inline)) T add(T x) { return value + x; }
  static __attribute__((always_inline)) T times(T x) { return x * 7; }
};
__attribute__((always_inline)) inline int plain(int a) { return a ^ 5; }
template <class T> __attribute__((always_inline)) inline T same(T a) { return a - 9; }
namespace { __attribute__((always_inline)) inline int hidden(int a) { return a * a; } }
class Outer {
 public:
  union Inner { int a; __attribute__((always_inline)) int get() { return a; } };
  __attribute__((always_inline)) explicit Outer(int a) { inner.a = a; }
  __attribute__((always_inline)) int operator+(int b) { return inner.get() + b; }
  Inner inner;
};
}
int use(int a) {
  ns::Box<int> box{a};
  ns::Outer outer(a);
  auto twice = [&](int b) __attribute__((always_inline)) { return b + a; };
  return box.add(a) * ns::Box<short>::times(a) + ns::plain(a) + ns::same(a) + ns::same<long long>(a)
    + ns::hidden(a) + twice(3) + (outer + 4);
}
""",
}


def opened_for(program: WindowsProgram, loop: Any, *, at: int = 0, **options: Any) -> Any:
    """A trace of the loop `at` bytes behind `start`, with the program at LOAD."""
    base = LOAD + program.entry + at
    moved = type("Moved", (loop,), {"BASE": base, "JNZ": base + 2, "JMP": base + 4})
    return ptkit.open(moved.stream(20), cpu=CPU, images=[(program.path, LOAD)], **options)


def normal(chain: Chain) -> Chain:
    """With `??`, as llvm-symbolizer says unknown files, and `./` left out."""
    return [
        (name, "" if file in ("??", None) else os.path.normpath(file), line or 0)
        for name, file, line in chain
    ]


def chains_of(program: WindowsProgram, trace: Any, addresses: list[int]) -> dict[int, Chain]:
    moved = LOAD - program.linked_base
    return {one: normal([tuple(frame) for frame in trace.inlines(one + moved)]) for one in addresses}


class Compared:
    """Chains of a program by ptkit, and by llvm-symbolizer from its PDB and from DWARF of the same code."""

    def __init__(self, program: WindowsProgram, trace: Any) -> None:
        self.is_32_bit = program.is_32_bit
        twin = dwarf_twin(program)
        self.addresses = instructions(program.path)
        assert instructions(twin) == self.addresses
        self.ours = chains_of(program, trace, self.addresses)
        by_pdb = reference_chains(program.path, self.addresses)
        by_dwarf = reference_chains(twin, self.addresses)
        self.by_pdb = {one: self._shown(normal(chain)) for one, chain in by_pdb.items()}
        self.by_dwarf = {one: self._shown(normal(chain)) for one, chain in by_dwarf.items()}

    def _shown(self, chain: Chain) -> Chain:
        """With the name of a function of 32-bit code as ptkit shows it."""
        name, file, line = chain[-1]
        return [*chain[:-1], (name.removeprefix("_") if self.is_32_bit else name, file, line)]

    def differences(self) -> Counter[str]:
        """Frames that are other ones than llvm-symbolizer has from the PDB, by kind."""
        return Counter(kind for one in self.addresses for kind in self._kinds(one))

    def _kinds(self, address: int) -> Iterator[str]:
        ours, pdb, dwarf = self.ours[address], self.by_pdb[address], self.by_dwarf[address]
        if not ours:
            # Between functions, the nearest public symbol names the address.
            yield "no function" if len(pdb) == 1 and pdb[0][1:] == ("", 0) else f"{address:#x}: nothing"
            return
        if [frame[0] for frame in ours] != [frame[0] for frame in pdb]:
            yield f"{address:#x}: functions {ours}, {pdb}"
            return
        for at, frame in enumerate(ours):
            if frame == pdb[at]:
                continue
            if len(dwarf) != len(ours):
                yield "other depth in DWARF"  # where the optimizer moved code, DWARF has other frames
            elif frame == dwarf[at]:
                # Of a PDB, llvm-symbolizer takes the row behind the address, or one of another file.
                yield "as in DWARF"
            elif dwarf[at][2] == 0:
                yield "line 0 in DWARF"  # CodeView has no line 0: the line before goes on
            else:
                yield f"{address:#x}: {frame}, PDB {pdb[at]}, DWARF {dwarf[at]}"


KINDS = {"no function", "as in DWARF", "line 0 in DWARF", "other depth in DWARF"}


@pytest.mark.parametrize(
    ("flag", "target", "at_least"),
    [("-O0", X64, 10_000), ("-O1", X64, 5_000), ("-O2", X64, 5_000), ("-O2", X86, 5_000)],
)
def test_chains_are_those_of_llvm_symbolizer(
    flag: str, target: str, at_least: int, tmp_path: Path, loop: Any
) -> None:
    program = windows_program(tmp_path, "prog", inlining_sources(7, 40), flag, "-gdwarf-4", target=target)
    trace = opened_for(program, loop, debug_path=[program.pdb])
    compared = Compared(program, trace)
    assert len(compared.addresses) >= at_least
    found = compared.differences()
    assert not {kind: number for kind, number in found.items() if kind not in KINDS}
    rare = found["line 0 in DWARF"] + found["other depth in DWARF"]
    assert rare < len(compared.addresses) * 0.03, found
    if flag == "-O0":
        assert found["other depth in DWARF"] == 0
    assert max(len(chain) for chain in compared.ours.values()) >= 4
    moved = LOAD - program.linked_base
    lines = trace.lines([one + moved for one in compared.addresses])
    for one, file, line in zip(compared.addresses, lines.file, lines.line, strict=True):
        innermost = compared.ours[one][0] if compared.ours[one] else ("", "", 0)
        assert (os.path.normpath(file) if file else "", line or 0) == innermost[1:], hex(one)
    assert not [one for one in trace.info.warnings if one.code.startswith(("PDB_", "DEBUG_"))]


def test_names_of_cxx_are_those_of_llvm_symbolizer(tmp_path: Path, loop: Any) -> None:
    program = windows_program(tmp_path, "prog", CLASSES, "-O0")
    addresses = instructions(program.path)
    ours = chains_of(program, opened_for(program, loop, debug_path=[program.pdb]), addresses)
    theirs = reference_chains(program.path, addresses)
    inlined = set()
    for one in addresses:
        names = [frame[0] for frame in ours[one][:-1]]
        assert names == [frame[0] for frame in theirs[one][:-1]], hex(one)
        inlined |= set(names)
    assert inlined == {
        "ns::Box<int>::add",
        "ns::Box<short>::times",
        "ns::plain",
        "ns::same",
        "ns::`anonymous namespace'::hidden",
        "ns::Outer::Outer",
        "ns::Outer::operator+",
        "ns::Outer::Inner::get",
        "use::<lambda0>::operator()",
    }


SPIN = {
    "spin.h": f"static inline __attribute__((always_inline)) void spin(void) {{\n{LOOP}\n}}\n",
    "main.c": '#include "spin.h"\nvoid start(void) {\n  __asm__ volatile("nop");\n  spin();\n}\n',
}


@pytest.fixture(scope="module")
def spin(tmp_path_factory: pytest.TempPathFactory) -> WindowsProgram:
    """The loop is in a function that is inlined into `start`."""
    return windows_program(tmp_path_factory.mktemp("spin"), "prog", SPIN, "-O1")


def test_rows_have_lines_and_frames(spin: WindowsProgram, loop: Any) -> None:
    trace = opened_for(spin, loop, at=1, symbols=[spin.pdb], debug_path=[spin.pdb])
    rows = zip(*_columns(trace, "source", "line"), strict=True)
    assert {(ntpath.basename(str(file)), line) for file, line in rows} == {("spin.h", 2)}
    (name,) = trace.symbolize([LOAD + spin.entry + 1], lines=True)
    assert name == "start+0x1 (spin.h:2)"
    frames = trace.functions(inlines=True)
    assert set(zip(frames["function"], frames["is_inlined"], strict=True)) == {
        ("start", False),
        ("spin", True),
    }
    chain = [
        (name, ntpath.basename(str(file)), line) for name, file, line in trace.inlines(LOAD + spin.entry + 1)
    ]
    assert chain == [("spin", "spin.h", 2), ("start", "main.c", 4)]


def _columns(trace: Any, *names: str) -> list[Any]:
    table = trace.functions(by="line", columns=[*names, "count"])
    return [table[name].tolist() for name in names]


def test_verbs_print_lines_and_frames(
    spin: WindowsProgram, loop: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    opened_for(spin, loop, at=1, symbols=[spin.pdb]).save(tmp_path / "saved.ptk")
    words = [str(tmp_path / "saved.ptk"), "--image", f"{spin.path}@{LOAD:#x}", "--debug-path", str(spin.pdb)]
    assert main(["functions", *words, "--by", "line"]) == 0
    assert "spin.h:2" in capsys.readouterr().out
    assert main(["functions", *words, "--inlines"]) == 0
    assert "spin [inlined]" in capsys.readouterr().out


def test_a_pdb_of_another_build_has_no_lines(spin: WindowsProgram, loop: Any, tmp_path: Path) -> None:
    other = windows_program(tmp_path, "prog", {**SPIN, "more.c": "int more(void) { return 1; }\n"}, "-O1")
    with warned("PDB_DIFFERS"):
        trace = opened_for(spin, loop, debug_path=[other.pdb])
        lines = trace.lines([LOAD + spin.entry + 1])
    assert [*lines.file] == [None]


def damaged(program: WindowsProgram, folder: Path, kind: int, at: int, word: bytes) -> Path:
    """A copy of the PDB in which the parts of this kind, after the symbols of modules, are damaged."""
    data = bytearray(program.pdb.read_bytes())
    head = kind.to_bytes(4, "little")
    found = [offset for offset in range(0, len(data), 4) if data[offset : offset + 4] == head]
    parts = [offset for offset in found if 8 < int.from_bytes(data[offset + 4 : offset + 8], "little") < 256]
    assert parts
    for offset in parts:
        data[offset + at : offset + at + len(word)] = word
    path = folder / "prog.pdb"
    path.write_bytes(data)
    return path


@pytest.mark.parametrize(
    ("kind", "at", "part", "reason"),
    [
        (0xF2, 24, "source lines", "lines of a function are cut"),
        (0xF6, 4, "source lines", "a part of its lines is cut"),
        (0xF6, 8, "inlined functions", "lines of inlined functions are cut"),
    ],
)
def test_a_part_that_cannot_be_read_is_said_once(
    kind: int, at: int, part: str, reason: str, spin: WindowsProgram, loop: Any, tmp_path: Path
) -> None:
    # The number of lines; bytes of the part; entries with more files, of which there are too many.
    word = {24: b"\xff" * 4, 4: b"\xff" * 4, 8: b"\x01\0\0\0"}[at]
    pdb = damaged(spin, tmp_path, kind, at, word)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        trace = opened_for(spin, loop, debug_path=[pdb])
        chain = trace.inlines(LOAD + spin.entry + 1)
        assert trace.inlines(LOAD + spin.entry + 1) == chain
        assert trace.symbolize([LOAD + spin.entry]) == ["start"]
    (said,) = of_code(trace_warnings(caught), "PDB_PART_UNREADABLE")
    assert said.arguments[:2] == (str(pdb), part)
    assert reason in said.arguments[2]
    assert "is damaged at offset" in said.arguments[2]
    assert [frame[2] for frame in chain] == ([4] if part == "inlined functions" else [0])


def test_lines_are_those_of_llvm_pdbutil(tmp_path: Path, loop: Any) -> None:
    program = windows_program(tmp_path, "prog", inlining_sources(7, 40), "-O0")
    trace = opened_for(program, loop, debug_path=[program.pdb])
    expected = pdb_dump.first_lines(program.pdb)
    assert len(expected) > 300
    lines = trace.lines([LOAD + 0x1000 + offset for offset in expected])
    innermost = {
        offset: (file, line)
        for offset, file, line in zip(expected, lines.file, lines.line, strict=True)
        if len(trace.inlines(LOAD + 0x1000 + offset)) == 1
    }
    assert len(innermost) > 100
    assert innermost == {offset: expected[offset] for offset in innermost}
