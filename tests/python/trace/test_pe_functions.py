"""Functions of stripped PE files have bounds, and so do their frames."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from mingw import NM, PREFIX, compile_program

SOURCE = """
__attribute__((noinline)) int inner(int x) { __asm__ volatile("nop"); return x * 3; }
int outer(int x) { return inner(x) + 1; }
"""


@pytest.fixture
def functions(tmp_path: Path) -> tuple[Path, dict[str, int]]:
    """A program without symbols, and the addresses of its functions."""
    if NM is None:
        pytest.skip("mingw-w64 is not installed (package gcc-mingw-w64-x86-64)")
    source, program = tmp_path / "two.c", tmp_path / "two.exe"
    source.write_text(SOURCE)
    compile_program(program, "-O2", "-nostdlib", "-Wl,-e,outer", source)
    rows = subprocess.run([NM, program], capture_output=True, text=True, check=True).stdout.split("\n")
    addresses = {row.split()[2]: int(row.split()[0], 16) for row in rows if row}
    stripped = tmp_path / "stripped.exe"
    strip = shutil.which(f"{PREFIX}strip")
    assert strip is not None
    subprocess.run([strip, "-o", stripped, program], check=True)
    return stripped, addresses


def test_frames_of_stripped_programs_have_bounds(
    functions: tuple[Path, dict[str, int]], loop: Any, packets: Any, open_trace: Any, tmp_path: Path
) -> None:
    program, addresses = functions
    inner, outer = addresses["inner"], addresses["outer"]
    head = program.read_bytes()
    base = int.from_bytes(head[int.from_bytes(head[0x3C:0x40], "little") + 0x30 :][:8], "little")  # ImageBase
    stream = loop.header(None, 1000) + packets.pge(outer) + packets.tnt("1") + packets.TIP_PGD
    trace = open_trace(stream, images=[program])
    names = [f"sub_{one - base:X}" for one in (outer, inner)]
    calls = trace.calls()
    assert [name for name in calls["entry_symbol"].tolist() if name] == names
    assert calls["entry_symbol"].tolist()[-1] == names[1]
    # The byte after the return is padding, and no function's.
    code = trace.instructions()["ip"].tolist()
    end = max(ip for ip in code if inner <= ip < outer) + 1
    texts = trace.symbolize([end - 1, end])
    assert texts == [f"{names[1]}+{end - 1 - inner:#x}", None]
    # A bundle has the bounds, too.
    saved = tmp_path / "two.ptk"
    trace.save(saved)
    program.unlink()
    again = open_trace(saved)
    assert again.symbolize([end - 1, end]) == texts
    assert again.calls()["entry_symbol"].tolist() == calls["entry_symbol"].tolist()
