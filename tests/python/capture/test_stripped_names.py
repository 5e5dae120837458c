"""Names of functions of stripped programs, by their bounds in frame data, from the bundle alone."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from compiling import build
from rounds import needs_emulator

import ptkit


def functions_of(program: Path) -> list[tuple[int, int, str]]:
    """Begin, end and name of each function with a size."""
    lines = subprocess.run(["nm", "-S", program], capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in lines.splitlines()]
    return [
        (int(begin, 16), int(begin, 16) + int(size, 16), name)
        for begin, size, kind, name in (row for row in rows if len(row) == 4)
        if kind in "Tt"
    ]


@pytest.mark.parametrize("backend", ["step", pytest.param("emulator", marks=needs_emulator)])
@pytest.mark.parametrize("redact", [False, True])
def test_names_without_the_program(backend: str, redact: bool, tmp_path: Path) -> None:
    if shutil.which("nm") is None:
        pytest.skip("nm is not installed")
    known = functions_of(build("stages", tmp_path, "-DWORK=work"))
    program = build("stages", tmp_path, "-DWORK=work", "-s").rename(tmp_path / "gone")
    output = tmp_path / "out.ptk"
    ptkit.record([program], output=output, backend=backend, quiet=True, redact=redact)
    program.unlink()
    branches = ptkit.open(output).branches()
    work = next(begin for begin, _, name in known if name == "work")
    symbols = {str(name) for name in branches["from_symbol"].tolist()}
    module = next(name for name in symbols if name.endswith(f"!{work:#x}")).split("!")[0]
    assert module.startswith("file-") if redact else module == "gone"
    own = branches.where(from_module=module)
    rvas = own["from_module_offset"]
    seen = set()
    for begin, end, name in known:
        rows = own[(rvas >= begin) & (rvas < end)]
        if len(rows) != 0:
            assert set(rows["from_symbol"].tolist()) == {f"{module}!{begin:#x}"}, name
            seen.add(name)
    assert {"work", "main"} <= seen
    libraries = branches[np.asarray(branches["from_module"] != module)]
    unnamed = sum(name is None for name in libraries["from_symbol"].tolist())
    assert unnamed < len(libraries) / 20
