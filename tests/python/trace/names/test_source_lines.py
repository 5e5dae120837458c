"""Source lines and inlined functions from DWARF, compared with those of another symbolizer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compiling import build, compiled
from symbolizers import demangled, reference_chains
from warned import warned

import ptkit

BASE = 0x5000_0000_0000
SOURCE = """\
extern volatile int sink;
static inline __attribute__((always_inline)) int inner(int a) {
  sink = a;
  return a * sink;
}
static inline __attribute__((always_inline)) int middle(int a) {
  return inner(a) + inner(a + 1);
}
int outer(int a) {
  return middle(a) ^ 5;
}
volatile int sink;
int main(void) { return outer(3); }
"""


@pytest.fixture(scope="session")
def small_source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A C program of which lines are known."""
    path = tmp_path_factory.mktemp("lines") / "small.c"
    path.write_text(SOURCE)
    return path


@pytest.fixture
def opened(loop: Any, open_trace: Any) -> Any:
    """A function that opens a trace with a program at BASE."""
    return lambda program: open_trace(loop.stream(1), images=[(program, BASE)])


def code_addresses(trace: Any, step: int) -> list[int]:
    """Addresses in all functions with a name and a size."""
    found: set[int] = set()
    for name, address, size in trace.symbols("*"):
        if not name.endswith("@plt"):
            found.update(range(address, address + size, step))
    return sorted(found)


def assert_same_chains(trace: Any, program: Path, step: int, least: int) -> None:
    """Of each address, files and lines of all functions, and the names of those that were inlined."""
    addresses = code_addresses(trace, step)
    expected = reference_chains(program, [address - BASE for address in addresses])
    names = demangled(function for chain in expected.values() for function, *_ in chain)
    lines = trace.lines(addresses)
    compared = 0
    for address, file, line in zip(addresses, lines.file.tolist(), lines.line.tolist(), strict=True):
        chain = expected[address - BASE]
        if file is None:  # the start files of C programs have symbols alone
            assert chain[-1][2] == 0, hex(address)
            continue
        frames = trace.inlines(address)
        assert [frame[1:] for frame in frames] == [frame[1:] for frame in chain], hex(address)
        inlined = [names[function] for function, *_ in chain[:-1]]
        assert [frame.function for frame in frames[:-1]] == inlined, hex(address)
        assert (file, line) == chain[0][1:], hex(address)
        compared += 1
    assert compared >= least


@pytest.mark.parametrize("version", [2, 3, 4, 5])
def test_every_version_of_dwarf(version: int, tmp_path: Path, opened: Any) -> None:
    program = build("exceptions", tmp_path, "-g", "-O2", f"-gdwarf-{version}")
    assert_same_chains(opened(program), program, 3, 500)


def test_ten_thousand_addresses_of_inlined_code(tmp_path: Path, opened: Any) -> None:
    program = build("inlined", tmp_path, "-g", "-O2")
    assert_same_chains(opened(program), program, 7, 10_000)


def test_lines_do_not_depend_on_the_order_of_addresses(tmp_path: Path, opened: Any) -> None:
    trace = opened(build("exceptions", tmp_path, "-g", "-O2"))
    addresses = np.array(code_addresses(trace, 1), np.uint64)
    around = np.concatenate(
        [addresses, addresses + np.uint64(0x10_0000), np.array([0, 2**64 - 1], np.uint64)]
    )
    one_by_one = [trace.lines([ip]) for ip in around.tolist()]
    expected = [(one.file[0], one.line[0]) for one in one_by_one]
    assert len(set(expected)) > 50
    random = np.random.default_rng(3)
    for order in (np.arange(len(around)), np.arange(len(around))[::-1], random.permutation(len(around))):
        found = trace.lines(around[order])
        assert list(zip(found.file, found.line, strict=True)) == [expected[i] for i in order]


def test_lines_and_chain_of_a_known_program(small_source: Path, tmp_path: Path, opened: Any) -> None:
    program = compiled(tmp_path / "small", "-g", "-O2", small_source)
    trace = opened(program)
    ((_, address, size),) = trace.symbols("outer")
    chains = {tuple(frame.line for frame in trace.inlines(ip)) for ip in range(address, address + size)}
    assert {(3, 7, 10), (4, 7, 10), (10,)} & chains >= {(3, 7, 10), (4, 7, 10)}
    innermost = next(
        ip for ip in range(address, address + size) if [f.line for f in trace.inlines(ip)] == [3, 7, 10]
    )
    frames = trace.inlines(innermost)
    assert [frame.function for frame in frames] == ["inner", "middle", "outer"]
    assert {frame.file for frame in frames} == {str(small_source)}
    lines = trace.lines([innermost, 0x10])
    assert lines.file.tolist() == [str(small_source), None]
    assert lines.line.dtype == np.uint32
    assert lines.line.tolist() == [3, 0]
    (text,) = trace.symbolize([innermost], lines=True)
    assert text.startswith("outer+0x")
    assert text.endswith(" (small.c:3)")


@pytest.mark.parametrize("version", [4, 5])
def test_relative_paths_begin_where_the_compiler_ran(
    version: int, small_source: Path, tmp_path: Path, opened: Any
) -> None:
    flags = ("-g", "-O2", f"-gdwarf-{version}", f"-fdebug-prefix-map={small_source.parent}/=")
    program = compiled(tmp_path / "small", *flags, small_source)
    assert_same_chains(opened(program), program, 1, 10)
    ((_, address, _),) = opened(program).symbols("main")
    assert opened(program).lines([address]).file.tolist() == [f"{Path.cwd()}/small.c"]


def test_strict_dwarf_2_has_no_ranges(small_source: Path, tmp_path: Path, opened: Any) -> None:
    flags = ("-g", "-O2", "-gdwarf-2", "-gstrict-dwarf", "-ffunction-sections")
    program = compiled(tmp_path / "small", *flags, small_source)
    trace = opened(program)
    for name in ("outer", "main"):
        ((_, address, _),) = trace.symbols(name)
        assert trace.lines([address]).file.tolist() == [str(small_source)]


@pytest.mark.parametrize("kind", ["zlib", "zlib-gnu"])
def test_compressed_sections(kind: str, small_source: Path, tmp_path: Path, opened: Any) -> None:
    program = compiled(tmp_path / "small", "-g", "-O2", f"-Wl,--compress-debug-sections={kind}", small_source)
    trace = opened(program)
    ((_, address, _),) = trace.symbols("main")
    assert trace.lines([address]).file.tolist() == [str(small_source)]


def test_without_debug_information_there_are_names_alone(
    small_source: Path, tmp_path: Path, opened: Any
) -> None:
    trace = opened(compiled(tmp_path / "small", "-O2", small_source))
    ((_, address, _),) = trace.symbols("main")
    assert trace.lines([address]).file.tolist() == [None]
    assert trace.inlines(address) == [ptkit.SourceFrame("main", None, 0)]
    assert trace.symbolize([address], lines=True) == ["main"]
    assert trace.inlines(0x10) == []


def test_recordings_use_the_file_at_its_path(small_source: Path, tmp_path: Path) -> None:
    program = compiled(tmp_path / "small", "-g", "-O0", "-Wl,--build-id", small_source)
    trace = ptkit.record([str(program)])
    ((_, address, _),) = trace.symbols("outer")
    rows = trace.branches(symbol="outer")
    assert trace.lines([address]).file.tolist() == [str(small_source)]
    assert set(trace.lines(rows["from_ip"], space=rows["space"]).line.tolist()) == {11, 13}


def test_another_build_at_the_path_is_not_used(small_source: Path, tmp_path: Path) -> None:
    program = compiled(tmp_path / "small", "-g", "-O0", "-Wl,--build-id", small_source)
    recording = tmp_path / "small.ptk"
    trace = ptkit.record([str(program)], output=recording)
    ((_, address, _),) = trace.symbols("outer")
    program.unlink()
    compiled(program, "-g", "-O1", "-Wl,--build-id", small_source)
    with warned("DEBUG_PROGRAM_DIFFERS"):
        assert ptkit.open(recording).lines([address]).file.tolist() == [None]


# Some damage claims more than a file of its size can have; which does depends on the paths in the file.
@pytest.mark.filterwarnings("ignore:.*debug information would take:ptkit.PtkitWarning")
def test_cut_and_damaged_debug_information_ends(small_source: Path, tmp_path: Path, opened: Any) -> None:
    whole = compiled(tmp_path / "whole", "-g", "-O2", small_source).read_bytes()
    trace = opened(tmp_path / "whole")
    ((_, address, size),) = trace.symbols("outer")
    random = np.random.default_rng(1)
    for number in range(40):
        data = bytearray(whole)
        for offset in random.integers(0x1000, len(data) - 0x800, 1 + 4 * number).tolist():
            data[offset] ^= 1 << int(random.integers(8))
        (tmp_path / "damaged").write_bytes(data)
        damaged = opened(tmp_path / "damaged")
        for ip in range(address, address + size, 5):
            assert len(damaged.inlines(ip)) < 100
        assert len(damaged.lines([address]).line) == 1


@pytest.mark.parametrize("filters", [None, ptkit.Filter.module("sums")], ids=["whole", "filtered"])
def test_instructions_of_lines_add_up_to_the_trace(filters: Any, tmp_path: Path) -> None:
    """Also where PLT entries are executed, which functions count for their callers."""
    source = tmp_path / "sums.c"
    source.write_text(
        "#include <stdlib.h>\n#include <string.h>\n"
        'int main(int n, char **v) { return getenv("NONE") != NULL && strlen(v[0]) > (size_t)n; }\n'
    )
    program = compiled(tmp_path / "sums", "-O1", "-g", source)
    trace = ptkit.record([str(program)], output=tmp_path / "sums.ptk", timing=[], filters=filters)
    executed = len(trace.instructions(columns=["cls"]))
    lines = trace.functions("line", columns=["function", "self_instructions", "flags"])
    assert lines["self_instructions"].sum() == executed > 0
    assert lines["flags"].dtype == trace.functions()["flags"].dtype
    for by in ("function", "entry", "module"):
        assert trace.functions(by)["self_instructions"].sum() == executed
    stubs = {name for name in lines["function"].tolist() if name is not None and name.endswith("@plt")}
    assert "getenv@plt" in stubs
    assert not stubs & set(trace.functions()["function"].tolist())


COUNTED = """\
volatile unsigned sink;
static inline __attribute__((always_inline)) unsigned hashed(unsigned x) {
  for (int i = 0; i < 4; ++i) x = x * 31 + (x >> 3);
  return x;
}
template <unsigned N> __attribute__((noinline)) void add(unsigned n) { while (n--) sink += N; }
__attribute__((noinline)) void find(unsigned n) { sink = hashed(n); }
__attribute__((noinline)) void rehash(unsigned n) { while (n--) sink = hashed(n); }
int main(void) { find(3); rehash(100); add<1>(3); add<2>(100); return 0; }
"""


def test_lines_have_the_function_that_executed_most_of_them(tmp_path: Path) -> None:
    (tmp_path / "counted.cpp").write_text(COUNTED)
    program = compiled(tmp_path / "counted", "-g", "-O1", tmp_path / "counted.cpp")
    trace = ptkit.record([str(program)], output=tmp_path / "counted.ptk")
    columns = ["function", "line", "source", "entry_ip", "is_inlined", "self_instructions"]
    lines = trace.functions("line", columns=columns)
    own = lines[[source == str(tmp_path / "counted.cpp") for source in lines["source"].tolist()]]
    names = dict(zip(own["line"].tolist(), own.named("function_full"), strict=True))
    assert names[3] == "hashed"  # in find(), which is lowest, and in rehash()
    assert own["is_inlined"][own["line"] == 3].all()
    assert names[6] == "void add<2u>(unsigned int)"
    assert not own["is_inlined"][own["line"] == 6].any()
    at = trace.lines(own["entry_ip"])
    assert at.line.tolist() == own["line"].tolist()
    whole = trace.functions(columns=["self_instructions"])["self_instructions"].sum()
    assert lines["self_instructions"].sum() == whole


def test_counts_of_lines_have_no_file_where_code_has_none(packets: Any) -> None:
    bundle = ptkit._core.Bundle()
    for ip in (0x1000, 0x20000, 0x300000):
        bundle.add_code(ip, bytes.fromhex("90 0f 05"))  # nop; syscall
        begin = packets.PSB + packets.tsc(1000) + packets.MODE_64 + packets.PSBEND
        bundle.add_stream(begin + packets.pge(ip) + packets.TIP_PGD)
    lines = ptkit.Trace(bundle, ptkit.decode.Settings()).functions(
        by="line", columns=["source", "module", "count"]
    )
    assert lines.named("source") == [None] * 3
    assert sorted(lines["module"].tolist()) == ["[anon 0x1000]", "[anon 0x20000]", "[anon 0x300000]"]
    assert lines.to_pandas()["count"].tolist() == [1, 1, 1]
