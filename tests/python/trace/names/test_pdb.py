"""Names of Windows programs from their PDBs, as LLVM's tools read them."""

from __future__ import annotations

import random
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pdb_dump
import pytest
from small_pe import in_memory
from symbolizers import demangled, reference_chains
from warned import of_code, trace_warnings, warned
from windows_programs import LOAD, WindowsProgram, windows_program

import ptkit
from ptkit.cli import main
from ptkit.trace.opening.images import CodeFile

CPU = "6/142/9"

# `start` is the loop program of the tests.
SOURCES = {
    "loop.c": """\
__attribute__((naked)) int start(void) { __asm__(".byte 0xff, 0xc9, 0x75, 0xfc, 0xff, 0xe0"); }
__attribute__((noinline)) static int work(int n) {
  int sum = 0;
  for (int i = 0; i < n; i++) sum += i ^ sum;
  return sum;
}
int twice(int n) { return work(n) + work(n + 1); }
__asm__(".text\\n.globl assembled\\n.def assembled; .scl 2; .type 32; .endef\\nassembled: nop\\nret\\n");
""",
    "space.cpp": """\
namespace ns {
template <class T> struct Box { __attribute__((noinline)) T add(T x) { return x + 1; } };
int g(int a) { Box<int> box; return box.add(a) * 2; }
}
extern "C" int twice(int);
int twice(short a) { return ns::g(a) + twice(int(a)); }
""",
}


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> WindowsProgram:
    return windows_program(tmp_path_factory.mktemp("windows"), "prog", SOURCES, "-O2")


@pytest.fixture
def opened(program: WindowsProgram, loop: Any) -> Callable[..., Any]:
    """Opens a trace of `start`, with the program at LOAD."""
    base = LOAD + program.entry
    moved = type("Moved", (loop,), {"BASE": base, "JNZ": base + 2, "JMP": base + 4})
    images = [(program.path, LOAD)]
    return lambda **options: ptkit.open(moved.stream(20), cpu=CPU, images=images, **options)


def procedures(program: WindowsProgram) -> dict[str, tuple[int, int]]:
    """Of each procedure in the PDB, the RVA and size; the program's code is one section at 0x1000."""
    return {one.name: (0x1000 + one.offset, one.size) for one in pdb_dump.procedures(program.pdb)}


def copy_with(program: WindowsProgram, path: Path, change: Callable[[bytearray, int], None]) -> Path:
    """A copy of the PDB; `change` gets its bytes and the offset of its GUID."""
    data = bytearray(program.pdb.read_bytes())
    text = program.pdb_id
    guid = bytes.fromhex(text[:32])
    raw = guid[3::-1] + guid[5:3:-1] + guid[7:5:-1] + guid[8:]
    assert data.count(raw) == 1
    change(data, data.index(raw))
    path.write_bytes(data)
    return path


def other_guid(data: bytearray, at: int) -> None:
    data[at] ^= 1


def other_age(data: bytearray, at: int) -> None:
    """The ages in both headers: that of debug information counts."""
    data[at - 4] += 1
    header = bytes.fromhex("ffffffff77093101")  # signature and version of the debug information
    assert data.count(header) == 1
    data[data.index(header) + 8] += 1


@pytest.mark.parametrize("given", ["list", "file", "folder", "server"])
def test_names_are_those_of_llvm_symbolizer(
    given: str, program: WindowsProgram, opened: Any, tmp_path: Path
) -> None:
    server = tmp_path / "prog.pdb" / program.pdb_id.replace("-", "").upper()
    server.mkdir(parents=True)
    shutil.copy(program.pdb, server)
    options: dict[str, Any] = {
        "list": {"symbols": [program.pdb]},
        "file": {"debug_path": [program.pdb]},
        "folder": {"debug_path": [program.pdb.parent]},
        "server": {"debug_path": [tmp_path]},
    }[given]
    trace = opened(**options)
    extents = procedures(program)
    assert {"start", "work", "twice", "ns::g", "ns::Box<int>::add"} <= set(extents)
    begins = [rva for rva, _ in extents.values()]
    chains = reference_chains(program.path, [program.linked_base + rva for rva in begins])
    raw = [chains[program.linked_base + rva][-1][0] for rva in begins]
    shown = demangled(raw)
    assert trace.symbolize([LOAD + rva for rva in begins]) == [shown[name] for name in raw]
    for name, (rva, size) in extents.items():
        last = trace.symbolize([LOAD + rva + size - 1])[0]
        assert str(last).endswith(f"+{size - 1:#x}"), name
        assert any(found[1:3] == (LOAD + rva, size) for found in trace.symbols(name)), name
    assert not [one for one in trace.info.warnings if one.code.startswith("PDB_")]


@pytest.mark.parametrize("option", ["symbols", "debug_path"])
def test_publics_name_what_has_no_procedure(option: str, program: WindowsProgram, opened: Any) -> None:
    trace = opened(**{option: [program.pdb]})
    assert "assembled" not in procedures(program)
    ((_, address, _),) = trace.symbols("assembled")
    assert trace.symbolize([address, address + 1]) == ["assembled", "assembled+0x1"]


def test_publics_are_those_of_llvm_pdbutil(program: WindowsProgram, opened: Any) -> None:
    trace = opened(symbols=[program.pdb])
    publics = pdb_dump.publics(program.pdb)
    assert len(publics) > len(procedures(program))
    for one in publics:
        assert any(address == LOAD + 0x1000 + one.offset for _, address, _ in trace.symbols(one.name)), one


@pytest.mark.parametrize("option", ["symbols", "debug_path"])
def test_rows_are_named_and_selected(option: str, program: WindowsProgram, opened: Any) -> None:
    trace = opened(**{option: [program.pdb]})
    assert set(trace.branches()["from_symbol"].tolist()) == {"start"}
    assert len(trace.branches(symbol="start")) == len(trace.branches()) > 0
    assert len(trace.branches(symbol="twice")) == 0


def test_functions_are_those_of_the_pdb(program: WindowsProgram, opened: Any) -> None:
    trace = opened(symbols=[program.pdb])
    functions = trace.functions()
    assert functions["function"].tolist() == ["start"]
    assert functions["instructions"].tolist() == [trace.blocks()["instructions"].sum()]


@pytest.mark.parametrize("verb", ["functions", "calls"])
def test_the_command_line_takes_pdbs(
    verb: str, program: WindowsProgram, opened: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    opened().save(tmp_path / "saved.ptk")
    words = [str(tmp_path / "saved.ptk"), "--image", f"{program.path}@{LOAD:#x}"]
    assert main([verb, *words, "--symbols", str(program.pdb)]) == 0
    assert " start" in capsys.readouterr().out
    assert main(["branches", *words, "--debug-path", str(program.pdb)]) == 0
    assert " start" in capsys.readouterr().out


def test_saved_traces_keep_names(program: WindowsProgram, opened: Any, tmp_path: Path) -> None:
    opened(symbols=[program.pdb]).save(tmp_path / "saved.ptk")
    saved = ptkit.open(tmp_path / "saved.ptk", cpu=CPU)
    assert set(saved.branches()["from_symbol"].tolist()) == {"start"}


def test_a_dump_of_memory_takes_the_pdb_of_its_build_alone(
    program: WindowsProgram, loop: Any, tmp_path: Path
) -> None:
    dump = tmp_path / "prog.dump"
    dump.write_bytes(in_memory(program.path.read_bytes(), LOAD))
    other = copy_with(program, tmp_path / "other.pdb", other_guid)
    address = LOAD + program.entry

    def name_by(pdb: Path) -> str | None:
        images = [(CodeFile(str(dump)), LOAD)]
        trace = ptkit.open(loop.stream(3), cpu=CPU, images=images, symbols=[(pdb, LOAD)])
        return trace.symbolize([address])[0]

    assert name_by(program.pdb) == "start"
    with warned("PDB_DIFFERS"):
        assert name_by(other) is None


@pytest.mark.parametrize("change", [other_guid, other_age])
@pytest.mark.parametrize("option", ["symbols", "debug_path"])
def test_a_pdb_of_another_build_is_not_used(
    option: str, change: Any, program: WindowsProgram, opened: Any, tmp_path: Path
) -> None:
    other = copy_with(program, tmp_path / "prog.pdb", change)
    addresses = [LOAD + rva for rva, _ in procedures(program).values()]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        trace = opened(**{option: [other]})
        names = trace.symbolize(addresses)
        assert trace.symbolize(addresses) == names
    (said,) = of_code(trace_warnings(caught), "PDB_DIFFERS")
    assert said.arguments[0] == str(other)
    assert said.arguments[2] == program.pdb_id
    assert "ns::g(int)" not in names
    assert "--debug-path" in str(said)


def test_the_right_one_of_several_is_used(program: WindowsProgram, opened: Any, tmp_path: Path) -> None:
    copy_with(program, tmp_path / "prog.pdb", other_guid)
    trace = opened(debug_path=[tmp_path, program.pdb.parent])
    address = LOAD + procedures(program)["ns::g"][0]
    assert trace.symbolize([address]) == ["ns::g(int)"]
    assert not [one for one in trace.info.warnings if one.code.startswith("PDB_")]


def test_an_address_loads_a_pdb_without_a_program(
    program: WindowsProgram, loop: Any, open_trace: Any
) -> None:
    base = LOAD + program.entry
    moved = type("Moved", (loop,), {"BASE": base, "JNZ": base + 2, "JMP": base + 4})
    trace = open_trace(moved.stream(3), images=moved.images(), symbols=[(program.pdb, LOAD)])
    assert trace.symbolize([moved.JMP]) == ["start+0x4"]
    with pytest.raises(ptkit.ConfigError, match=r"GUID and age .* no module of the trace has"):
        open_trace(moved.stream(3), images=moved.images(), symbols=[program.pdb])


@pytest.mark.parametrize("option", ["symbols", "debug_path"])
def test_a_cut_pdb_gives_no_names(option: str, program: WindowsProgram, opened: Any, tmp_path: Path) -> None:
    data = program.pdb.read_bytes()
    cut = tmp_path / "prog.pdb"
    cut.write_bytes(data[:-1])
    reason = f"it is cut: of {len(data)} bytes it has {len(data) - 1}"
    with warned("PDB_UNREADABLE", cut, reason):
        trace = opened(**{option: [cut]})
        names = trace.symbolize([LOAD + program.entry])
    assert names[0] in ("start", None) or names[0].startswith("sub_")


def damaged_copies(data: bytes) -> list[bytes]:
    chance = random.Random(5)
    copies = [data[:size] for size in (0, 40, 4096, len(data) // 2, len(data) - 1)]
    for _ in range(20):
        copy = bytearray(data)
        for _ in range(chance.choice((1, 8, 64))):
            copy[chance.randrange(len(copy))] ^= 1 << chance.randrange(8)
        copies.append(bytes(copy))
    return copies


def test_damage_is_no_crash(program: WindowsProgram, opened: Any, tmp_path: Path) -> None:
    addresses = [LOAD + rva for rva, _ in procedures(program).values()]
    for number, data in enumerate(damaged_copies(program.pdb.read_bytes())):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "prog.pdb").write_bytes(data)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            trace = opened(debug_path=[folder])
            names = trace.symbolize(addresses)
            lines = trace.lines(addresses)
            chains = [trace.inlines(address) for address in addresses]
        assert len(names) == len(lines.line) == len(chains) == len(addresses)
        codes = {one.code for one in trace_warnings(caught)}
        assert codes <= {"PDB_UNREADABLE", "PDB_PART_UNREADABLE", "PDB_DIFFERS"}
