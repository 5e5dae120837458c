"""Traces as bundles: `Trace.save` and `ptkit save`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_elf import elf

import ptkit
from ptkit.cli import main


def test_a_saved_trace_has_the_same_rows_and_names(tmp_path: Path, loop: Any, open_trace: Any) -> None:
    program, stream, output = tmp_path / "program", tmp_path / "raw.pt", tmp_path / "saved.ptk"
    program.write_bytes(elf(loop.CODE, loop.BASE, "main"))
    stream.write_bytes(loop.stream(20))
    trace = open_trace(stream, images=[program], tsc_hz=10**9, cpu="6/158/10")
    assert trace.save(output) == output.stat().st_size
    program.unlink()
    saved = ptkit.open(output)
    assert saved.format == "ptk"
    assert (saved.info.cpu, saved.info.tsc_hz) == (trace.info.cpu, 10**9)
    assert saved.info.files == trace.info.files  # nothing is redacted
    before, after = trace.branches(), saved.branches()
    for column in before.columns:
        assert np.array_equal(before[column], after[column]), column
    assert after["from_symbol"].tolist() == before["from_symbol"].tolist()
    assert set(after["from_symbol"].tolist()) == {"main"}


def test_save_refuses_what_it_cannot_keep(tmp_path: Path, loop: Any, open_trace: Any) -> None:
    stream = tmp_path / "raw.pt"
    stream.write_bytes(loop.stream(2))
    with pytest.raises(ptkit.ConfigError, match="is what is read"):
        open_trace(stream).save(stream)
    with pytest.raises(ptkit.ConfigError, match="is no path"):
        open_trace(stream).save("")
    trace = open_trace(stream, image_callback=lambda *_: None)
    with pytest.raises(ptkit.UnsupportedError, match="image_callback"):
        trace.save(tmp_path / "x.ptk")
    with pytest.raises(ptkit.OpenError):
        open_trace(stream).save(tmp_path / "absent" / "x.ptk")


def test_the_verb_saves_with_code(tmp_path: Path, loop: Any, capsys: pytest.CaptureFixture[str]) -> None:
    stream, code, output = (tmp_path / name for name in ("raw.pt", "code.bin", "saved.ptk"))
    stream.write_bytes(loop.stream(2))
    code.write_bytes(loop.CODE)
    options = ["--code", f"{code}@{loop.BASE:#x}", "--processor", "6/142/9"]
    assert main(["save", str(stream), *options, "-o", str(output)]) == 0
    assert capsys.readouterr().out == f"{output}: {output.stat().st_size:,} bytes\n"
    assert len(ptkit.open(output).branches()) == 14
    code.write_bytes(b"not a recording")
    assert main(["save", str(stream), *options, "-o", str(code)]) == 2
    assert "not overwritten" in capsys.readouterr().err
