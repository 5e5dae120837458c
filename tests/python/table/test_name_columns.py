"""Names of rows: each in its own address space and at its own time."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import ptk_chunks
import pytest
from rounds import opened
from small_elf import elf

import ptkit
from ptkit.cli.main import main

ENDS = ("branches", "edges", "gaps")
OF_IP = ("blocks", "instructions", "events", "errors", "packets")
OF_SPACE = ["", "alpha_fn", "beta_fn", "shared_fn"]


def expected(table: Any, address: str) -> list[str | None]:
    """What the programs of `spaces` are called where an address is theirs."""
    names = zip(table.named(address), table["space"].tolist(), strict=True)
    return [OF_SPACE[space] if ip is not None and 0x1000 <= ip < 0x1006 else None for ip, space in names]


@pytest.mark.parametrize("table", [*ENDS, *OF_IP])
def test_columns_of_every_table_with_addresses(spaces: Any, table: str) -> None:
    rows = getattr(spaces, table)
    rows = rows() if callable(rows) else rows
    for address in ("from_ip", "to_ip") if table in ENDS else ("ip",):
        for what in ("symbol", "module"):
            name = address.removesuffix("ip") + what
            assert name in rows.available
            assert name not in rows.columns
            assert rows.column(name).dtype == rows[name].dtype == object
            assert rows.column(name).role == "derived"
            assert rows.column(f"{name}_offset").unit == "bytes"
            assert rows[name].tolist() == rows.named(name) == expected(rows, address)
            assert not rows[name].flags.writeable
    if table not in ("errors", "gaps"):
        assert len(rows) > 0


def test_offsets_lie_in_what_is_named(spaces: Any, loop: Any) -> None:
    branches = spaces.branches()
    known = branches.known("from_symbol_offset")
    assert known is not None
    assert known.all()
    assert (branches["from_symbol_offset"] == branches["from_ip"] - loop.BASE).all()
    assert branches["from_symbol_offset"].dtype == np.uint64
    assert (branches["from_module_offset"] == branches["from_ip"] - loop.BASE).all()  # RVA
    assert (branches["from_file_offset"] == branches["from_ip"] - loop.BASE + 0x1000).all()
    assert branches.dtypes.keys() == set(branches.columns)
    shown = branches[["from_symbol", "from_symbol_offset"]]
    assert shown.units == {"from_symbol": "", "from_symbol_offset": "bytes"}
    assert shown.dtypes == {"from_symbol": np.dtype(object), "from_symbol_offset": np.dtype(np.uint64)}


@pytest.mark.parametrize("table", ["branches", "edges", "blocks", "instructions", "packets"])
def test_what_is_asked_for_alone_is_the_same(spaces: Any, table: str) -> None:
    name = "from_symbol" if table in ENDS else "symbol"
    whole, alone = getattr(spaces, table)(), getattr(spaces, table)(columns=[name])
    assert alone.columns == (name,)
    assert alone[name].tolist() == whole[name].tolist()
    parts = getattr(spaces, f"iter_{table}")(columns=[name], rows=7, reuse=True)
    assert [text for part in parts for text in part[name].tolist()] == whole[name].tolist()
    merged = getattr(spaces, table)(columns=[name], order="time")
    assert sorted(map(str, merged[name].tolist())) == sorted(map(str, whole[name].tolist()))


def test_what_was_not_read_is_not_guessed(spaces: Any) -> None:
    part = spaces.branches(columns=["from_ip"])
    assert "from_symbol" not in part.available
    with pytest.raises(ptkit.ColumnError, match=r"'from_symbol' .*add it to columns"):
        part["from_symbol"]
    with pytest.raises(ptkit.ColumnError, match="did you mean 'from_symbol'"):
        spaces.branches()["from_symbl"]
    with pytest.raises(ptkit.ColumnError, match=r"there are .*from_symbol"):
        spaces.branches(columns=["name"])
    with pytest.raises(ptkit.ColumnError, match="has no column 'symbol'"):
        spaces.branches(columns=["symbol"])


def test_where_takes_names(spaces: Any) -> None:
    branches = spaces.branches()
    alpha = branches.where(from_symbol="alpha_fn")
    assert set(alpha["space"].tolist()) == {1}
    both = branches.where(from_symbol=["alpha_fn", "beta_fn"], kind="JUMP_INDIRECT")
    assert set(both["space"].tolist()) == {1, 2}
    assert len(branches.where(from_symbol="nothing")) == 0
    packets = spaces.packets()
    assert len(packets.where(symbol=None)) + len(packets.where(module=OF_SPACE[1:])) == len(packets)
    with pytest.raises(ptkit.ConfigError, match="from_symbol=7 cannot match"):
        branches.where(from_symbol=7)


def test_names_in_pandas_and_arrow(spaces: Any) -> None:
    pandas, pyarrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    for columns in (["symbol", "symbol_offset", "space"], ["module"]):
        packets = spaces.packets(columns=[*columns, "kind"])
        frame = packets.to_pandas()
        arrow = packets.to_arrow()
        name = columns[0]
        assert isinstance(frame[name].dtype, pandas.CategoricalDtype)
        assert frame[name].astype(object).where(frame[name].notna(), None).tolist() == packets[name].tolist()
        assert pyarrow.types.is_dictionary(arrow.schema.field(name).type)
        assert arrow.column(name).to_pylist() == packets[name].tolist()
        arrow.validate(full=True)
        assert pyarrow.table(packets).column(name).null_count == packets[name].tolist().count(None)
    offsets = spaces.packets(columns=["symbol_offset"])
    assert offsets.to_arrow().column(0).to_pylist() == offsets.named("symbol_offset")
    assert None in offsets.named("symbol_offset")
    beta = spaces.edges().where(from_symbol="beta_fn").to_pandas(["from_symbol", "count"])
    assert beta["from_symbol"].cat.categories.tolist() == ["beta_fn"]  # others have no rows
    assert spaces.branches()[:0].to_arrow(["from_symbol"]).num_rows == 0


def test_names_follow_the_code_with_time(
    loop: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An address space has one file at an address, then another, then nothing."""
    chunks = [ptk_chunks.process(0, 1, 0, loop.stream(100, psb_every=1, step=100))]
    for number, (name, *times) in enumerate([("old", 0, 5_000), ("new", 5_000, 90_000)]):
        chunks.append(ptk_chunks.file(number, name, f"{name}_fn", 0x100, len(loop.CODE)))
        chunks.append(
            ptk_chunks.code(loop.BASE, loop.CODE, space=1, times=tuple(times), file=number, offset=0x100)
        )
    trace, _ = opened(ptk_chunks.write(tmp_path / "out.ptk", chunks))
    branches = trace.branches()
    symbols, ends = branches["from_symbol"], branches["tsc"] + branches["tsc_error"]
    assert set(symbols[ends < 5_000].tolist()) == {"old_fn"}
    assert set(symbols[branches["tsc"] >= 5_000].tolist()) == {"new_fn"}
    assert branches.named("from_module") == [text.removesuffix("_fn") for text in symbols]
    main(["branches", "--json", trace.source])
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()[1:]]
    assert [(row["from_symbol"], row["from_module"]) for row in rows] == [
        (name, name.removesuffix("_fn")) for name in symbols
    ]
    main(["branches", trace.source])
    lines = re.findall(r"  (\w+_fn)\S* -> ", capsys.readouterr().out)
    assert lines == symbols.tolist()
    assert branches["from_module_offset"].tolist() == (branches["from_ip"] - loop.BASE + 0x100).tolist()
    # Rows without times have the name of what was there last.
    assert set(trace.edges()["from_symbol"].tolist()) == {"new_fn"}
    assert trace.symbolize([loop.BASE]) == ["new_fn"]
    assert trace.symbolize([loop.BASE], tsc=100) == ["old_fn"]
    assert trace.symbolize([loop.BASE], tsc=95_000) == [None]


def test_addresses_without_a_space_must_be_clear(spaces: Any, loop: Any) -> None:
    for call in (spaces.symbolize, spaces.modules):
        with pytest.raises(ptkit.ConfigError, match=r"0x1000 is .*shared_fn in address space 0 and .*alpha"):
            call([loop.BASE])
        with pytest.raises(ptkit.ConfigError, match=r"space=table\['space'\].*table\['from_"):
            call(spaces.branches()["from_ip"])
        assert call([0x9000]) == [None]


def test_addresses_that_one_space_has_need_none(loop: Any, tmp_path: Any) -> None:
    bundle = ptkit._core.Bundle()
    for number, (name, address) in enumerate((("one", 0x1000), ("two", 0x2000), ("one", 0x1000)), 1):
        bundle.add_space(pid=number)
        path = tmp_path / name
        path.write_bytes(elf(loop.CODE, address, f"{name}_fn"))
        bundle.add_image(str(path), space=number)
    bundle.add_stream(loop.stream(10), space=1, pid=1, tid=1)
    trace = ptkit.Trace(bundle, ptkit.decode.Settings())
    ips = [0x1000, 0x2004, 0x1002, 0x3000]
    assert trace.symbolize(ips) == ["one_fn", "two_fn+0x4", "one_fn+0x2", None]
    assert trace.symbolize(ips, offsets=False, modules=True) == ["one_fn", "two_fn", "one_fn", None]
    assert trace.modules(ips) == ["one", "two", "one", None]


def test_a_table_shows_names_at_their_time(spaces: Any) -> None:
    text = repr(spaces.branches(stream=1))
    assert "beta_fn+0x4" in text
    assert "alpha_fn" not in text
    assert "beta_fn" in repr(spaces.edges().where(from_symbol="beta_fn")[["from_symbol", "count"]])
    assert "beta_fn+0x4" in repr(spaces.branches(stream=1)[["from_ip", "kind"]])  # other columns are hidden
    assert "_fn" not in repr(spaces.branches(stream=1, columns=["from_ip", "kind"]))  # were not read
