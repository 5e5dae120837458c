"""Selection by patterns of names, and by addresses in functions and modules."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from small_elf import elf
from small_pe import pe

import ptkit
from ptkit.cli import main


@pytest.fixture
def named(loop: Any, open_trace: Any, tmp_path: Path) -> Any:
    """A program with the function `again`, of which each instruction is executed."""
    path = tmp_path / "loop.out"
    path.write_bytes(elf(loop.CODE, loop.BASE, "again"))
    return open_trace(loop.stream(10), images=[path])


def _ips(trace: Any, **query: Any) -> set[int]:
    return set(trace.instructions(**query)["ip"].tolist())


def test_patterns_of_functions(named: Any, loop: Any) -> None:
    everything = {loop.BASE, loop.JNZ, loop.JMP}
    for pattern in ("again", "ag*", "a?ain", "[ab]gain", "*"):
        assert _ips(named, symbol=pattern) == everything, pattern
    assert [name for name, *_ in named.symbols("a*n")] == ["again"]
    with pytest.raises(ptkit.SymbolError, match=r"no symbol matches 'b\*'"):
        named.branches(symbol="b*")


def test_functions_of_modules(named: Any, loop: Any) -> None:
    everything = {loop.BASE, loop.JNZ, loop.JMP}
    for name in ("loop.out!again", "loop!again", "LOOP!again", "l*.out!ag*"):
        assert _ips(named, symbol=name) == everything, name
    for name in ("other!again", "loop.out!other", "!again", "loop.out!"):
        with pytest.raises(ptkit.SymbolError, match="no symbol"):
            named.branches(symbol=name)


def test_a_pattern_of_a_part_is_said(named: Any) -> None:
    for pattern, wider in (("gai*", "*gai*"), ("*gai", "*gai*"), ("a[g]a", "*a[g]a*")):
        with pytest.raises(ptkit.SymbolError) as error:
            named.branches(symbol=pattern)
        assert str(error.value) == f"no symbol matches {pattern!r}; did you mean {wider!r}?"
        with pytest.raises(ptkit.SymbolError) as error:
            named.callers(pattern)
        assert str(error.value) == f"no function {pattern!r} was called; did you mean {wider!r}?"
    for pattern in ("xgai*", "*xgai*"):
        with pytest.raises(ptkit.SymbolError, match=r"matches '[*xgai]*'$"):
            named.branches(symbol=pattern)


def test_addresses_in_functions(named: Any, loop: Any) -> None:
    assert _ips(named, symbol="again+0x2") == {loop.JNZ}
    assert _ips(named, symbol=["again+4", "again+0x0"]) == {loop.JMP, loop.BASE}
    with pytest.raises(ptkit.SymbolError, match=r"again\+0x99: the function has 0x"):
        named.branches(symbol="again+0x99")
    with pytest.raises(ptkit.SymbolError, match="no symbol 'agai'; did you mean again"):
        named.branches(symbol="agai+0x2")


def test_addresses_in_modules_are_rvas(loop: Any, open_trace: Any, tmp_path: Path) -> None:
    path = tmp_path / "driver.sys"
    path.write_bytes(pe(loop.CODE, loop.BASE - 0x1000))
    trace = open_trace(loop.stream(10), images=[path])
    (label,) = trace.symbolize([loop.JNZ], modules=True)
    assert label == "[driver.sys]+0x1002"
    assert _ips(trace, symbol=label) == {loop.JNZ}
    assert _ips(trace, symbol="driver.sys+0x1004") == {loop.JMP}
    assert _ips(trace, symbol="driver.sys!0x1004") == {loop.JMP}  # as functions without a name are printed
    assert _ips(trace, symbol="[driv*]+0x1004") == {loop.JMP}
    with pytest.raises(ptkit.SymbolError, match=r"\[driver.sys\]\+0x999999: the file has no code there"):
        trace.branches(symbol="[driver.sys]+0x999999")
    with pytest.raises(ptkit.SymbolError, match=r"no symbol matches '\[other.sys\]'"):
        trace.branches(symbol="[other.sys]+0x1004")
    assert _ips(trace, module="driv*") == {loop.BASE, loop.JNZ, loop.JMP}


def test_a_pattern_with_an_offset_is_of_functions_first(loop: Any, open_trace: Any, tmp_path: Path) -> None:
    path = tmp_path / "again.out"
    path.write_bytes(elf(loop.CODE, loop.BASE, "again"))
    trace = open_trace(loop.stream(10), images=[path])
    assert _ips(trace, symbol="again*+0x2") == {loop.JNZ}


def test_addresses_in_modules_below_page_dumps(dumped: Any, loop: Any) -> None:
    assert _ips(dumped, symbol="[driver.sys]+0x1004") == {loop.JMP}


def test_patterns_on_the_command_line(loop: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, raw = tmp_path / "loop.out", tmp_path / "raw.pt"
    path.write_bytes(elf(loop.CODE, loop.BASE, "again"))
    raw.write_bytes(loop.stream(10))
    source = [str(raw), "--image", str(path), "--processor", "6/142/9"]
    assert main(["instructions", *source, "--symbol", "ag*+0x2", "--no-inst"]) == 0
    assert set(capsys.readouterr().out.split()) == {f"{loop.JNZ:016x}"}
    assert main(["packets", *source, "--symbol", "again", "--limit", "1"]) == 0
    assert "tip.pge" in capsys.readouterr().out
    assert main(["branches", *source, "--symbol", "nothing*"]) == 2
    assert capsys.readouterr().err == "ptkit branches: error: no symbol matches 'nothing*'\n"
