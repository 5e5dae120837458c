"""Tables as CSV, Arrow and Parquet, read back by the readers that people use."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from executed_parts import executed_part
from readers import READERS, has_module
from rounds import needs_emulator

import ptkit
from ptkit.cli import main
from ptkit.export.csv_table import cell
from ptkit.export.options import TABLES

needs_pyarrow = pytest.mark.skipif(not find_spec("pyarrow"), reason="pyarrow is missing")


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> ptkit.Trace:
    """A recording with two threads or more, with functions and calls."""
    from compiling import build

    folder = tmp_path_factory.mktemp("threads")
    return ptkit.record([build("threads", folder)], output=folder / "out.ptk", backend="emulator", quiet=True)


def rows_of(trace: ptkit.Trace, table: str) -> int:
    found = getattr(trace, table)
    return len(found if table in ("errors", "gaps") else found())


def csv_rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, strict=True))


# ---- CSV


def test_cells_are_no_formulas() -> None:
    cells = {
        "main": b"main",
        "": b'""',
        "=cmd|' /C calc'!A0": b"'=cmd|' /C calc'!A0",
        "+1": b"'+1",
        "-1": b"'-1",
        "@sum": b"'@sum",
        "\uff1d1": "'\uff1d1".encode(),
        "\t=1": b"\\x09=1",
        "\r=1": b"\\x0d=1",
        "a\nb": b"\\x0ab".replace(b"\\", b"a\\", 1),
        "f(int, char)": b'"f(int, char)"',
        'operator""_s': b'"operator""""_s"',
        '=HYPERLINK("x")': b'"\'=HYPERLINK(""x"")"',
        "a\0b\x1b": b"a\\x00b\\x1b",
        "\udcff": b"\\xff",
        "caf\u00e9": "caf\u00e9".encode(),
    }
    assert {text: cell(text) for text in cells} == cells
    for text in cells:
        (row,) = csv.reader(io.StringIO(cell(text).decode() + "\n", newline=""), strict=True)
        assert len(row) == 1
        assert not row[0].startswith(("=", "+", "-", "@", "\t", "\r"))


def test_hostile_names_stay_in_their_cells(tmp_path: Path, loop: Any) -> None:
    trace = hostile(tmp_path, loop, '=1+1,"x\ny')
    trace.export(tmp_path / "out.csv", columns=["from_symbol"])
    names = {row["from_symbol"] for row in csv_rows(tmp_path / "out.csv")}
    assert names == {"'=1+1,\"x\\x0ay"}


def hostile(folder: Path, loop: Any, name: str) -> ptkit.Trace:
    from small_elf import elf

    path = folder / "hostile"
    path.write_bytes(elf(loop.CODE, loop.BASE, name))
    (folder / "loop.pt").write_bytes(loop.stream(20))
    return ptkit.open(folder / "loop.pt", images=[path], cpu="6/142/9")


def test_csv_needs_no_pyarrow(tmp_path: Path, loop: Any) -> None:
    (tmp_path / "loop.pt").write_bytes(loop.stream(20))
    (tmp_path / "code.bin").write_bytes(loop.CODE)
    script = f"""
import sys
sys.modules["pyarrow"] = None
import ptkit
trace = ptkit.open("loop.pt", images=[("code.bin", {loop.BASE})], cpu="6/142/9")
trace.export("out.csv")
for format in ("arrow", "parquet"):
    try:
        trace.export("out", format)
    except ptkit.UnsupportedError as error:
        print(error)
"""
    command = [sys.executable, "-c", script]
    said = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path).stdout
    assert said.count("needs pyarrow: pip install 'ptkit[arrow]'") == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["code.bin", "loop.pt", "out.csv"]
    assert len(csv_rows(tmp_path / "out.csv")) > 20


def test_csv_has_the_values_of_the_table(tmp_path: Path, loop_trace: Any) -> None:
    loop_trace.export(tmp_path / "out.csv", table="branches")
    rows, table = csv_rows(tmp_path / "out.csv"), loop_trace.branches()
    assert [int(row["from_ip"], 16) for row in rows] == table["from_ip"].tolist()
    assert [row["kind"] for row in rows] == table.named("kind")
    assert [row["taken"] == "true" for row in rows] == table["taken"].tolist()
    to_ip = [None if row["to_ip"] == "" else int(row["to_ip"], 16) for row in rows]
    assert to_ip == table.named("to_ip")
    tsc = [None if row["tsc"] == "" else int(row["tsc"]) for row in rows]
    assert tsc == table.named("tsc")
    assert {"predicted", "flags", "to_known"}.isdisjoint(rows[0])


def test_columns_and_rows_are_chosen(tmp_path: Path, loop: Any, capsys: pytest.CaptureFixture[str]) -> None:
    raw, code, out = tmp_path / "loop.pt", tmp_path / "code.bin", tmp_path / "out.csv"
    raw.write_bytes(loop.stream(20))
    code.write_bytes(loop.CODE)
    verb = ["export", str(raw), "--code", f"{code}@{loop.BASE:#x}", "--processor", "6/142/9", "-o", str(out)]
    assert main([*verb, "--columns", "kind,to_ip", "--columns", "taken"]) == 0
    assert list(csv_rows(out)[0]) == ["kind", "to_ip", "taken"]
    assert main([*verb, "--kind", "RETURN", "--kind", "jump", "--columns", "kind"]) == 0
    assert {row["kind"] for row in csv_rows(out)} <= {"RETURN", "JUMP"}
    assert main([*verb, "--table", "instructions", "--ip", f"{loop.BASE:#x}"]) == 0
    assert {int(row["ip"], 16) for row in csv_rows(out)} == {loop.BASE}
    for options, text in {
        "--columns nothing": "no column 'nothing'",
        "--columns ,": "columns: none is given",
        "--table instructions --kind CALL": "kind selects branches, edges and events, not instructions",
        "--table mappings --ip 1": "ip selects no mappings",
        "--columns ip --names short": "names: columns are chosen",
    }.items():
        capsys.readouterr()
        assert main([*verb, *options.split()]) == 2
        assert text in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main([*verb, "--table", "branch"])
    assert "did you mean branches?" in capsys.readouterr().err
    assert main([*verb, "--table", "all"]) == 2
    assert "--table all: --format csv takes branches" in capsys.readouterr().err


def test_losses_are_counted(tmp_path: Path, loop: Any) -> None:
    path = tmp_path / "loop.pt"
    path.write_bytes(loop.stream(3) + b"\x02\xff" * 9 + loop.stream(3))
    trace = ptkit.open(path, images=[{loop.BASE: loop.CODE}], cpu="6/142/9")
    assert len(trace.errors) > 0
    written = trace.export(tmp_path / "out.csv")
    assert written.notes[0].startswith(f"{len(trace.errors)} error")
    assert "rows may be missing" in written.notes[0]
    trace.export(tmp_path / "errors.csv", table="errors")
    assert len(csv_rows(tmp_path / "errors.csv")) == len(trace.errors)


# ---- Arrow and Parquet


@needs_emulator
@needs_pyarrow
@pytest.mark.parametrize("table", TABLES)
def test_readers_see_equal_rows(recording: ptkit.Trace, tmp_path: Path, table: str) -> None:
    import pandas
    import polars
    from pyarrow import ipc, parquet

    for suffix in (".csv", ".arrow", ".parquet"):
        recording.export(tmp_path / f"out{suffix}", table=table)
    count = rows_of(recording, table)
    with ipc.open_stream(tmp_path / "out.arrow") as stream:
        arrow = stream.read_all()
    arrow.validate(full=True)
    text = pandas.read_csv(tmp_path / "out.csv", low_memory=False)
    dataset = parquet.read_table(tmp_path / "out.parquet")
    found = {
        "arrow": len(arrow),
        "csv": len(text),
        "parquet": len(dataset),
        "pandas": len(pandas.read_parquet(tmp_path / "out.parquet")),
        "polars": polars.read_ipc_stream(tmp_path / "out.arrow").height,
        "polars parquet": polars.read_parquet(tmp_path / "out.parquet" / "**" / "*.parquet").height,
    }
    assert found == dict.fromkeys(found, count), table
    assert set(arrow.column_names) == set(text.columns) == set(dataset.column_names)
    for name in arrow.column_names:
        assert arrow.column(name).null_count == int(text[name].isna().sum()), name
        if name != "stream" or table == "edges":
            assert arrow.column(name).to_pylist() == dataset.column(name).to_pylist(), name


@needs_emulator
@needs_pyarrow
def test_values_are_those_of_the_tables(recording: ptkit.Trace, tmp_path: Path) -> None:
    from pyarrow import compute, ipc, parquet

    recording.export(tmp_path / "b.arrow")
    with ipc.open_stream(tmp_path / "b.arrow") as stream:
        arrow = stream.read_all()
    table = recording.branches()
    for name in ("from_ip", "to_ip", "kind", "tid", "stream", "from_symbol_full", "to_symbol_full", "tsc"):
        assert arrow.column(name).to_pylist() == table.named(name), name
    recording.export(tmp_path / "f.parquet", table="functions")
    functions = parquet.read_table(tmp_path / "f.parquet")
    for name in ("self_instructions", "count"):
        assert compute.sum(functions.column(name)).as_py() == int(recording.functions()[name].sum())
    recording.export(tmp_path / "c.parquet", table="calls")
    calls = parquet.read_table(tmp_path / "c.parquet")
    assert compute.sum(calls.column("self_instructions")).as_py() == int(
        recording.functions()["self_instructions"].sum()
    )


@needs_emulator
@needs_pyarrow
def test_streams_are_folders(recording: ptkit.Trace, tmp_path: Path) -> None:
    from pyarrow import parquet

    out = tmp_path / "all.parquet"
    written = recording.export(out, table="all")
    assert {path.name for path in out.iterdir()} == set(TABLES)
    assert len(recording.streams) > 1
    streams = {path.name for path in (out / "branches").iterdir()}
    assert streams == {f"stream={one}" for one in range(len(recording.streams))}
    assert written.bytes == sum(path.stat().st_size for path in out.rglob("*.parquet"))
    for one in range(len(recording.streams)):
        (file,) = (out / "branches" / f"stream={one}").iterdir()
        assert parquet.read_metadata(file).num_rows == len(recording.branches(stream=one))
    recording.export(out, table="edges", tid=recording.streams[0].tid)  # replaces the dataset
    assert [path.name for path in out.iterdir()] == ["part-0.parquet"]


@needs_pyarrow
def test_row_groups_are_told_apart_by_time(tmp_path: Path, loop: Any) -> None:
    from pyarrow import parquet

    stream = b"".join(loop.stream(20_000, tsc=1_000_000 * one) for one in range(1, 12))
    (tmp_path / "loop.pt").write_bytes(stream)
    trace = ptkit.open(tmp_path / "loop.pt", images=[{loop.BASE: loop.CODE}], cpu="6/142/9")
    trace.export(tmp_path / "out.parquet")
    metadata = parquet.read_metadata(tmp_path / "out.parquet" / "stream=0" / "part-0.parquet")
    assert metadata.num_row_groups > 1
    column = metadata.schema.names.index("tsc")
    spans = [
        (one.min, one.max)
        for one in (
            metadata.row_group(group).column(column).statistics for group in range(metadata.num_row_groups)
        )
    ]
    assert all(end <= begin for (_, end), (begin, _) in pairwise(spans))
    assert spans[0][0] < spans[-1][0]


@needs_pyarrow
def test_other_folders_are_not_replaced(tmp_path: Path, loop_trace: Any) -> None:
    out = tmp_path / "mine.parquet"
    out.mkdir()
    (out / "notes.txt").write_text("mine")
    with pytest.raises(ptkit.ConfigError, match=r"no part of a dataset of Parquet, such as notes\.txt"):
        loop_trace.export(out)
    (tmp_path / "file.parquet").write_text("mine")
    with pytest.raises(ptkit.ConfigError, match="is no folder"):
        loop_trace.export(tmp_path / "file.parquet")
    with pytest.raises(ptkit.ConfigError, match="choose others besides stream"):
        loop_trace.export(tmp_path / "new.parquet", columns=["stream"])
    assert sorted(path.name for path in tmp_path.iterdir() if "parquet" in path.name) == [
        "file.parquet",
        "mine.parquet",
    ]


@needs_emulator
@needs_pyarrow
def test_parts_of_a_trace_are_tables(recording: ptkit.Trace, tmp_path: Path) -> None:
    from pyarrow import parquet

    view = executed_part(recording, 20, 60)
    for table in ("branches", "calls", "functions", "edges"):
        view.export(tmp_path / f"{table}.parquet", table=table)
        assert len(parquet.read_table(tmp_path / f"{table}.parquet")) == len(getattr(view, table)()), table
    events = recording.events(stream=0)
    piece = recording.slice(after=events[:1], before=events[-1:])
    piece.export(tmp_path / "slice.csv", table="instructions")
    assert len(csv_rows(tmp_path / "slice.csv")) == len(piece.instructions())


@needs_emulator
@needs_pyarrow
@pytest.mark.skipif(not has_module("duckdb"), reason="no duckdb: PTKIT_READERS names a Python that has it")
def test_duckdb_reads_all(recording: ptkit.Trace, tmp_path: Path) -> None:
    out = tmp_path / "all.parquet"
    recording.export(out, table="all")
    recording.export(tmp_path / "calls.csv", table="calls")
    script = """
import duckdb, json, sys
folder, text = sys.argv[1:]
def one(sql): return duckdb.sql(sql).fetchall()
read = lambda table: f"read_parquet('{folder}/{table}/**/*.parquet', hive_partitioning=true)"
print(json.dumps({
    "counts": {t: one(f"select count(*) from {read(t)}")[0][0] for t in TABLES},
    "self": int(one(f"select sum(self_instructions) from {read('calls')}")[0][0]),
    "text": int(one(f"select sum(self_instructions) from read_csv('{text}')")[0][0]),
    "functions": int(one(f"select sum(self_instructions) from {read('functions')}")[0][0]),
    "streams": [int(row[0]) for row in one(f"select distinct stream from {read('branches')} order by 1")],
    "kinds": dict(one(f"select kind, count(*) from {read('branches')} group by 1")),
}))
""".replace("TABLES", repr(TABLES))
    said = subprocess.run(
        [READERS, "-c", script, str(out), str(tmp_path / "calls.csv")], capture_output=True, text=True
    )
    assert said.returncode == 0, said.stderr
    found = json.loads(said.stdout)
    assert found["counts"] == {table: rows_of(recording, table) for table in TABLES}
    total = int(recording.functions()["self_instructions"].sum())
    assert (found["self"], found["text"], found["functions"]) == (total, total, total)
    assert found["streams"] == list(range(len(recording.streams)))
    kinds, counts = np.unique(recording.branches().named("kind"), return_counts=True)
    assert found["kinds"] == dict(zip(kinds.tolist(), counts.tolist(), strict=True))
