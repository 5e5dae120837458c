"""Names in bundles, which have the code that was executed, are those of the whole files."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compiling import build, compiled, compiled_by

import ptkit
from ptkit.cli import main

# Labels without a size, of which some code is not executed: within functions, at ends of sections, in two
# sections of code.
ASSEMBLY = """
.globl _start
.text
_start: mov $4, %ecx
1: call even_or_odd
 sub $2, %ecx
 jnz 1b
 call apart
 call last
 mov $60, %eax
 xor %edi, %edi
 syscall
even_or_odd: test $1, %ecx
 jz 2f
 nop
 ret
2: inc %edx
 ret
last: jmp 3f
 nop
3: ret
 nop
.section .apart, "ax"
 nop
apart: test %ecx, %ecx
 jz 4f
 nop
4: call 5f
 ret
 nop
.section .without_names, "ax"
5: nop
 ret
"""


def whole(bundle: Path, trace: Any) -> Any:
    """The same recording, with its files over the pieces of their code that it has."""
    mappings = trace.mappings()
    loads = {}
    for path, address, rva in zip(
        *(mappings[name].tolist() for name in ("path", "address", "rva")), strict=True
    ):
        if path is not None and Path(path).is_file():
            loads[path] = address - rva
    assert loads
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ptkit.PtkitWarning)
        return ptkit.open(bundle, images=sorted(loads.items()))


def same(some: Any, other: Any, columns: list[str]) -> None:
    assert len(some) == len(other) > 0
    for column in columns:
        values = [table[column] for table in (some, other)]
        different = np.flatnonzero(values[0] != values[1])
        assert not len(different), (column, *(one[different[:3]].tolist() for one in values))


def compare(bundle: Path) -> Any:
    trace = ptkit.open(bundle)
    other = whole(bundle, trace)
    ends = ["from_symbol", "from_symbol_offset", "to_symbol", "to_symbol_offset"]
    same(trace.branches(), other.branches(), ends)
    same(trace.edges(), other.edges(), [*ends, "count"])
    same(trace.instructions(), other.instructions(), ["symbol", "symbol_offset"])
    same(trace.functions(), other.functions(), ["function", "count", "self_instructions"])
    symbols = trace.instructions(columns=["symbol"])["symbol"]
    for name in sorted({name for name in symbols.tolist() if name is not None and "*" not in name}):
        # What is named so is what is selected by that name, but for other names of the same function.
        chosen = [one.instructions(symbol=name, columns=["symbol"])["symbol"] for one in (trace, other)]
        assert chosen[0].tolist() == chosen[1].tolist(), name
        assert np.count_nonzero(chosen[0] == name) == np.count_nonzero(symbols == name), name
        for alias in {*chosen[0].tolist()} - {name}:
            assert begins(trace, alias) & begins(trace, name), (alias, name)
    return trace


def begins(trace: Any, name: str) -> set[int]:
    return {address for _, address, _ in trace.symbols(name)}


def assembled(folder: Path, *flags: str) -> Path:
    source = folder / "labels.S"
    source.write_text(ASSEMBLY)
    return compiled(folder / "labels", "-nostdlib", *flags, source)


@pytest.mark.parametrize("flags", [("-static",), ("-static-pie",)], ids=["static", "pie"])
def test_assembly(flags: tuple[str, ...], tmp_path: Path) -> None:
    bundle = tmp_path / "labels.ptk"
    ptkit.record([str(assembled(tmp_path, *flags))], output=bundle, timing=[])
    trace = compare(bundle)
    assert set(trace.functions()["function"].tolist()) >= {"_start", "even_or_odd", "apart", "last"}
    instructions = trace.instructions()
    assert None in instructions["symbol"].tolist()  # no label extends into the section without names


@pytest.mark.parametrize("flags", [(), ("-static",), ("-no-pie",)], ids=["pie", "static", "no-pie"])
def test_c_programs(flags: tuple[str, ...], tmp_path: Path) -> None:
    bundle = tmp_path / "killed.ptk"
    ptkit.record([str(build("killed", tmp_path, *flags))], output=bundle, timing=[])
    trace = compare(bundle)
    assert "_init" in trace.functions()["function"].tolist()


def test_the_saved_trace_of_a_whole_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = assembled(tmp_path, "-static")
    bundle, saved = tmp_path / "labels.ptk", tmp_path / "saved.ptk"
    ptkit.record([str(program)], output=bundle, timing=[])
    other = whole(bundle, ptkit.open(bundle))
    other.save(saved)
    program.unlink()
    same(ptkit.open(saved).branches(), other.branches(), ["from_symbol", "to_symbol"])
    assert main(["edges", str(bundle), "--by", "function"]) == 0
    said = capsys.readouterr().out
    assert "even_or_odd -> even_or_odd" in said
    assert "[labels] -> [labels]" not in said


def test_stripped_go_programs(tmp_path: Path) -> None:
    program = compiled_by("go", "names.go", tmp_path, "build")
    (tmp_path / "stripped").mkdir()
    stripped = compiled_by("go", "names.go", tmp_path / "stripped", "build", "-ldflags=-s -w")
    counts = []
    for path in (program, stripped):
        bundle = path.with_suffix(".ptk")
        ptkit.record([str(path)], output=bundle, timing=[])
        functions = ptkit.open(bundle).functions(columns=["function", "count"])
        found = dict(zip(functions["function"].tolist(), functions["count"].tolist(), strict=True))
        counts.append({name: found.get(name) for name in ("main.main", "main.worker", "main.leaf")})
    assert counts[0] == counts[1] == {"main.main": 1, "main.worker": 1, "main.leaf": 100}
    compare(stripped.with_suffix(".ptk"))
