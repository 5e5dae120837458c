"""Names of Microsoft's compilers are shown demangled, and select in both forms."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import ptkit
from ptkit import _core
from ptkit.cli import main

RAW, NAME, SHORT = "?again@Loop@@QEAAXH@Z", "Loop::again(int)", "Loop::again"


@pytest.fixture
def trace(loop: Any, open_trace: Any, tmp_path: Path) -> Any:
    if not _core.has_microsoft_demangler():
        pytest.skip("LLVM's demangler is not installed (package llvm-dev)")
    path = tmp_path / "names.txt"
    path.write_text(f"{loop.BASE:x} 6 {RAW}\n")
    return open_trace(loop.stream(10), images=loop.images(), symbols=[path])


@pytest.mark.parametrize("name", [RAW, NAME, SHORT, "again", "?again@*", "Loop::*"])
def test_selection_takes_both_forms(trace: Any, loop: Any, name: str) -> None:
    assert set(trace.instructions(symbol=name)["ip"].tolist()) == {loop.BASE, loop.JNZ, loop.JMP}


@pytest.mark.parametrize("name", [RAW, NAME, SHORT])
def test_calls_are_selected_by_both_forms(trace: Any, name: str) -> None:
    assert len(trace.calls(symbol=name)) == len(trace.calls()) > 0


def test_tables_have_demangled_names(trace: Any) -> None:
    assert set(trace.branches()["from_symbol_full"].tolist()) == {NAME}
    assert set(trace.branches()["from_symbol"].tolist()) == {SHORT}
    assert _core.demangled(RAW) == NAME


def test_info_says_that_names_stay_mangled(
    loop: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from small_pe import pe

    stream, image = tmp_path / "loop.pt", tmp_path / "loop.exe"
    stream.write_bytes(loop.stream(1))
    image.write_bytes(pe(loop.CODE, loop.BASE - 0x1000))

    def info(*more: str) -> str:
        assert main(["info", str(stream), *more]) == 0
        return capsys.readouterr().out

    monkeypatch.setattr(_core, "has_microsoft_demangler", lambda: False)
    assert "stay mangled" in info("--image", str(image))
    assert "stay mangled" not in info()
    monkeypatch.setattr(_core, "has_microsoft_demangler", lambda: True)
    assert "stay mangled" not in info("--image", str(image))


def test_hostile_names_stay(loop: Any, open_trace: Any, tmp_path: Path) -> None:
    chain = "?f@@YAXP6AXPAH@Z" + "".join(f"P6AX{str(i) * 8}@Z" for i in range(9)) + "@Z"
    path = tmp_path / "names.txt"
    path.write_text(f"{loop.BASE:x} 6 {chain}\n")
    trace = open_trace(loop.stream(1), images=loop.images(), symbols=[path])
    assert trace.symbolize([loop.BASE]) == [chain]
    assert isinstance(trace, ptkit.Trace)
