"""Inlined functions of programs of which each object file has its debug information beside it."""

from __future__ import annotations

import shutil
import subprocess
import warnings
from pathlib import Path
from typing import Any

import pytest
from compiling import compiled
from symbolizers import reference_chains
from warned import of_code, warned

import ptkit

BASE = 0x5000_0000_0000
SHARED = """\
extern volatile int sink;
static inline __attribute__((always_inline)) int inner(int a) { sink = a; return a * sink; }
static inline __attribute__((always_inline)) int middle(int a) {
  if (a > sink) return inner(a) + inner(a + 1);
  return inner(a) - inner(a + 2);
}
"""
SOURCES = {
    "one.c": '#include "shared.h"\nint one(int a) { return middle(a) ^ 5; }\nvolatile int sink;\n',
    "two.c": '#include "shared.h"\nint one(int);\nint two(int a) { return middle(a + 1) + one(a); }\n'
    "int main(void) { return two(sink) + middle(3); }\n",
}
FLAGS = ("-g", "-O2")
SPLIT = (*FLAGS, "-gsplit-dwarf")


@pytest.fixture
def opened(loop: Any, open_trace: Any) -> Any:
    """A function that opens a trace with a program at BASE."""
    return lambda program, **options: open_trace(loop.stream(1), images=[(program, BASE)], **options)


def program_of(folder: Path, *flags: str, compiler: str = "gcc") -> Path:
    """A program of two object files."""
    folder.mkdir(exist_ok=True)
    (folder / "shared.h").write_text(SHARED)
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is missing")
    objects = []
    for name, text in SOURCES.items():
        (folder / name).write_text(text)
        objects.append(folder / name.replace(".c", ".o"))
        subprocess.run([compiler, *flags, "-c", name, "-o", objects[-1]], check=True, cwd=folder)
    return compiled(folder / "prog", *objects)


def split_program(folder: Path, *flags: str, compiler: str = "gcc") -> Path:
    """The same; its .dwo files are in the folder."""
    program = program_of(folder, *SPLIT, *flags, compiler=compiler)
    assert {path.name for path in folder.glob("*.dwo")} == {"one.dwo", "two.dwo"}
    return program


def chains_of_whole(program: Path, opened: Any, *flags: str, compiler: str) -> Any:
    """What another symbolizer says of the same program whose debug information is not split."""
    split = program.rename(program.parent / "split")
    whole = program_of(program.parent, *FLAGS, *flags, compiler=compiler)
    expected = reference_chains(whole, [ip - BASE for ip in code_of(opened(whole))])
    split.rename(program)
    return expected


def code_of(trace: Any) -> list[int]:
    """Addresses in all functions of the sources."""
    found = [symbol for name in ("one", "two", "main") for symbol in trace.symbols(name)]
    return [ip for _, address, size in found for ip in range(address, address + size)]


def chains_of(trace: Any) -> dict[int, list[tuple[str | None, str | None, int]]]:
    """Functions at each address."""
    return {ip - BASE: [tuple(frame) for frame in trace.inlines(ip)] for ip in code_of(trace)}


def assert_chains(trace: Any, expected: Any) -> None:
    """They are those of another symbolizer; nothing is missing."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert chains_of(trace) == expected
        lines = trace.lines(code_of(trace))
    locations = list(zip(lines.file.tolist(), lines.line.tolist(), strict=True))
    assert locations == [chain[0][1:] for chain in expected.values()]
    assert {len(chain) for chain in expected.values()} >= {1, 3}


KINDS = [
    ("gcc", "-gdwarf-5"),
    ("gcc", "-gdwarf-4"),
    ("gcc", "-gz"),
    ("gcc", "-ffunction-sections"),
    ("clang", "-gdwarf-5"),
    ("clang", "-gdwarf-4"),
]


@pytest.mark.parametrize(("compiler", "flag"), KINDS)
def test_files_beside_object_files(compiler: str, flag: str, tmp_path: Path, opened: Any) -> None:
    program = split_program(tmp_path / "here", flag, compiler=compiler)
    expected = chains_of_whole(program, opened, flag, compiler=compiler)
    assert_chains(opened(program), expected)


@pytest.mark.parametrize(
    ("compiler", "flag", "packer"),
    [("gcc", "-gdwarf-4", "dwp"), ("clang", "-gdwarf-5", "llvm-dwp"), ("clang", "-gdwarf-4", "llvm-dwp")],
)
def test_packages(compiler: str, flag: str, packer: str, tmp_path: Path, opened: Any) -> None:
    program = split_program(tmp_path / "here", flag, compiler=compiler)
    expected = chains_of_whole(program, opened, flag, compiler=compiler)
    if shutil.which(packer) is None:
        pytest.skip(f"{packer} is not installed")
    package = program.with_suffix(".dwp")
    subprocess.run(
        [packer, "-e", program, "-o", package], check=True, cwd=program.parent, stdin=subprocess.DEVNULL
    )
    for path in program.parent.glob("*.dwo"):
        path.unlink()
    assert_chains(opened(program), expected)
    moved = tmp_path / "packages" / "prog.dwp"
    moved.parent.mkdir()
    package.rename(moved)
    program.write_bytes(program.read_bytes() + b"\0")  # another file: the first one stays in memory
    assert_chains(opened(program, debug_path=[moved]), expected)
    program.write_bytes(program.read_bytes() + b"\0")
    assert_chains(opened(program, debug_path=[moved.parent]), expected)


def test_missing_files_leave_lines(tmp_path: Path, opened: Any) -> None:
    program = split_program(tmp_path / "here")
    expected = chains_of(opened(program))
    gone = tmp_path / "gone"
    (tmp_path / "here").rename(gone)
    program = gone / "prog"
    program.write_bytes(program.read_bytes() + b"\0")
    moved = tmp_path / "moved"
    moved.mkdir()
    for path in gone.glob("*.dwo"):
        path.rename(moved / path.name)
    trace = opened(program)
    ips = code_of(trace)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lines = trace.lines(ips).line.tolist()
    assert lines == [chain[0][2] for chain in expected.values()]
    with warned("DEBUG_SPLIT_MISSING", ".dwo"):
        assert {len(trace.inlines(ip)) for ip in ips} == {1}
    assert len(of_code(trace.info.warnings, "DEBUG_SPLIT_MISSING")) == 1
    program.write_bytes(program.read_bytes() + b"\0")
    assert chains_of(opened(program, debug_path=[moved])) == expected


def test_files_of_another_build_are_not_used(tmp_path: Path, opened: Any) -> None:
    program = split_program(tmp_path / "here")
    program = program.rename(tmp_path / "prog")
    (tmp_path / "here" / "one.c").write_text(SOURCES["one.c"] + "int more(void) { return 1; }\n")
    subprocess.run(["gcc", *SPLIT, "-c", "one.c"], check=True, cwd=tmp_path / "here")
    trace = opened(program)
    ((_, one, _),) = trace.symbols("one")
    ((_, two, size),) = trace.symbols("two")
    with warned("DEBUG_SPLIT_MISSING", "one.dwo"):
        assert [frame.function for frame in trace.inlines(one)] == ["one"]
    assert 3 in {len(trace.inlines(ip)) for ip in range(two, two + size)}


@pytest.mark.parametrize("how", ["cut", "flipped"])
def test_damaged_files_end(how: str, tmp_path: Path, opened: Any) -> None:
    program = split_program(tmp_path / "here")
    whole = (tmp_path / "here" / "one.dwo").read_bytes()
    for number in range(1, 24):
        data = bytearray(whole[: len(whole) * number // 24] if how == "cut" else whole)
        if how == "flipped":
            for offset in range(number * 7 % 61, len(data), 61):
                data[offset] ^= 1 << number % 8
        (tmp_path / "here" / "one.dwo").write_bytes(data)
        program.write_bytes(program.read_bytes() + b"\0")
        trace = opened(program)
        ((_, address, size),) = trace.symbols("one")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ptkit.PtkitWarning)
            assert all(1 <= len(trace.inlines(ip)) < 10 for ip in range(address, address + size, 3))
