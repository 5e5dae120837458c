"""Symbols of address spaces that overlap: two programs at the same addresses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ptkit
from ptkit.cli import main

TABLES = ["branches", "instructions", "blocks", "edges", "packets", "events"]


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize(("symbol", "space"), [("alpha_fn", 1), ("beta_fn", 2), ("shared_fn", 3)])
def test_a_symbol_selects_rows_of_its_own_space(spaces: Any, table: str, symbol: str, space: int) -> None:
    part = getattr(spaces, table)(symbol=symbol)
    assert len(part) > 0
    assert set(part["space"].tolist()) == {space}
    if table in ("branches", "instructions"):
        assert len(part) == len(getattr(spaces, table)(stream=space - 1))


def test_a_symbol_and_addresses(spaces: Any, loop: Any) -> None:
    part = spaces.branches(symbol="beta_fn", ip=(loop.JMP, loop.JMP + 1), columns=["space", "from_ip"])
    assert set(part["space"].tolist()) == {2}
    assert len(part) == 40
    assert len(spaces.branches(ip=(loop.JMP, loop.JMP + 1))) == 120
    assert len(spaces.branches(symbol="beta_fn", ip=(0x9000, 0x9001))) == 0


def test_switches_move_a_stream_to_another_space(spaces: Any, loop: Any, tmp_path: Path) -> None:
    bundle = ptkit._core.Bundle()
    for number, name in ((1, "alpha_fn"), (2, "beta_fn")):
        bundle.add_space(pid=number)
        bundle.add_image(str(tmp_path / name), space=number)
    switches = [(0, 1, 1, 1), (5_000, 2, 2, 2)]
    bundle.add_stream(loop.stream(100, psb_every=1, step=100), cpu=0, switches=switches)
    trace = ptkit.Trace(bundle, ptkit.decode.Settings())
    for table in ("branches", "packets"):
        # No column tells of threads or times: the switches are followed for the symbol alone.
        first = getattr(trace, table)(symbol="alpha_fn", columns=["offset"])
        second = getattr(trace, table)(symbol="beta_fn", columns=["offset"])
        assert 0 < int(first["offset"].max()) <= int(second["offset"].min())


def test_names_of_rows_are_those_of_their_space(spaces: Any) -> None:
    for number, name in ((0, "alpha_fn"), (1, "beta_fn"), (2, "shared_fn")):
        for table in (spaces.branches(stream=number), spaces.edges(stream=number)):
            text = repr(table)
            assert name in text
            assert not {"alpha_fn", "beta_fn", "shared_fn"} - {name} & set(text.replace("+", " ").split())


def test_names_take_a_space_for_each_address(spaces: Any, loop: Any) -> None:
    ips = [loop.BASE, loop.BASE, loop.JMP, loop.BASE]
    names = ["beta_fn", "alpha_fn", "beta_fn+0x4", "shared_fn"]
    for each in ([2, 1, 2, 0], np.array([2, 1, 2, 3], np.uint32), (2, 1, 2, np.int64(3))):
        assert spaces.symbolize(ips, space=each) == names
    assert spaces.symbolize(ips, space=1, offsets=False) == ["alpha_fn"] * 4
    assert spaces.modules([*ips, 0x9000], space=[2, 1, 2, 0, 1]) == [
        "beta_fn",
        "alpha_fn",
        "beta_fn",
        "shared_fn",
        None,
    ]
    assert spaces.modules(loop.BASE, space=0) == ["shared_fn"]
    table = spaces.branches()
    found = spaces.symbolize(table["from_ip"], space=table["space"], offsets=False)
    assert found == [["", "alpha_fn", "beta_fn", "shared_fn"][space] for space in table["space"]]
    with pytest.raises(ptkit.ConfigError, match="3 spaces do not fit 4"):
        spaces.symbolize(ips, space=[1, 2, 1])
    with pytest.raises(ptkit.ConfigError, match="space=4"):
        spaces.symbolize(ips, space=[1, 2, 4, 1])
    assert [symbol[0] for symbol in spaces.symbols("alpha_fn")] == ["alpha_fn"]


def test_packets_with_branches_have_the_names_of_their_space(
    spaces: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(ptkit, "open", lambda *_, **__: spaces)
    for stream, name in enumerate(("alpha_fn", "beta_fn", "shared_fn")):
        assert main(["packets", "--branches", "--stream", str(stream), "ignored"]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert sum(line.endswith(f" {name}") for line in lines if "tip.pge" in line) == 1
        named = [line for line in lines if " > " in line]
        assert named
        assert all(line.count(name) == line.count("_fn") >= 1 for line in named)


def test_names_are_those_of_the_rows_space(spaces: Any, loop: Any) -> None:
    ips = np.array([loop.BASE + 1, loop.BASE, loop.BASE, loop.BASE, loop.JMP + 0x1000], np.uint64)
    named = spaces.symbolize(ips, space=np.array([1, 2, 3, 0, 2], np.uint32))
    assert named == ["alpha_fn+0x1", "beta_fn", "shared_fn", "shared_fn", None]


def test_lines_of_branches_name_their_own_program(
    spaces: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(ptkit, "open", lambda *_, **__: spaces)
    assert main(["branches", "--stream", "1", "ignored"]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if "=>" in line]
    assert lines
    assert all("beta_fn" in line and "alpha_fn" not in line for line in lines)


def test_modules_select_what_was_mapped_from_them(spaces: Any, tmp_path: Path) -> None:
    for number, name in ((1, "alpha_fn"), (2, "beta_fn"), (3, "shared_fn")):
        for form in (name, str(tmp_path / name), [name]):
            rows = spaces.branches(module=form)
            assert set(rows["space"].tolist()) == {number}
            assert len(rows) == len(spaces.branches(stream=number - 1))
    both = spaces.branches(module=["alpha_fn", "beta_fn"])
    assert len(both) == len(spaces.branches(stream=[0, 1]))
    assert len(spaces.branches(symbol=["alpha_fn", "beta_fn"])) == len(both)
    assert len(spaces.branches(module="alpha_fn", symbol="beta_fn")) == 0
    with pytest.raises(ptkit.ConfigError, match="no module 'alpha' in this trace; did you mean alpha_fn"):
        spaces.branches(module="alpha")
    with pytest.raises(
        ptkit.ConfigError, match="no module 'x' in this trace: it has shared_fn, alpha_fn, beta_fn"
    ):
        spaces.branches(module="x")
    with pytest.raises(ptkit.SymbolError, match="no symbol 'gamma_fn'"):
        spaces.branches(symbol=["alpha_fn", "gamma_fn"])


def test_modules_and_symbols_on_the_command_line(
    spaces: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(ptkit, "open", lambda *_, **__: spaces)

    def count(*words: str) -> int:
        assert main(["branches", "--json", *words, "ignored"]) == 0
        return len(capsys.readouterr().out.splitlines()) - 1  # without the header

    one, two = (len(spaces.branches(stream=stream)) for stream in (0, 1))
    for option in ("--module", "--symbol"):
        assert count(option, "alpha_fn") == one
        assert count(option, "alpha_fn", option, "beta_fn") == one + two
