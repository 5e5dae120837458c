"""``ptkit bench``: what it times is what the tables have, and it says where libipt differs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ptkit
from ptkit import _core
from ptkit.cli import main
from ptkit.cli.synthetic import CODE, synthetic_stream
from ptkit.cli.throughput import TABLES, Figure, measure
from ptkit.cli.verbs import bench
from ptkit.trace import Trace

CPU = "6/143/8"


def opened(size: int, engine: str = "ptkit") -> Trace:
    return ptkit.open(synthetic_stream(size), images=[CODE], cpu=CPU, engine=engine)


@pytest.fixture
def stream(tmp_path: Path) -> list[str]:
    """Arguments that open 8 KB of the made stream, from files."""
    path = tmp_path / "made.pt"
    path.write_bytes(synthetic_stream(8192))
    ((address, code),) = CODE.items()
    (tmp_path / "code.bin").write_bytes(code)
    return [str(path), "--code", f"{tmp_path / 'code.bin'}@{address:#x}", "--processor", CPU]


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    status = main(["bench", *arguments])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def test_synthetic_stream_has_six_branches_for_each_tnt_packet() -> None:
    trace = opened(8192)
    kinds = trace.packets()["kind"]
    packets = int((kinds == ptkit.PacketKind.TNT_8).sum())
    assert len(synthetic_stream(8192)) == 8192
    assert (kinds == ptkit.PacketKind.PSB).sum() == 2
    conditional = trace.branches()["kind"] == ptkit.BranchKind.COND
    assert conditional.sum() == 6 * packets
    assert len(trace.errors) == 0


@pytest.mark.skipif("libipt" not in _core.engines(), reason="needs a build with libipt")
def test_libipt_agrees_on_the_synthetic_stream() -> None:
    ours, theirs = opened(8192).branches(), opened(8192, "libipt").branches()
    for name in ("from_ip", "to_ip", "kind"):
        np.testing.assert_array_equal(ours[name], theirs[name])


def test_figures_are_of_whole_tables(stream: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = run(capsys, *stream, "--json", "--seconds", "0.001")
    document = json.loads(out)
    assert (status, err) == (0, "")
    assert document["bytes"] == 8192
    trace = opened(8192)
    rows = {
        "packets": len(trace.packets()),
        "edges": int(trace.edges()["count"].sum()),
        "branches": len(trace.branches()),
        "instructions": len(trace.instructions()),
    }
    ours = [one for one in document["figures"] if one["engine"] == "ptkit"]
    assert {(one["table"], one["isa"]) for one in ours} == {
        (table, isa) for table in TABLES for isa in _core.isas()
    }
    for one in document["figures"]:
        if one["whole"]:
            assert (one["rows"], one["errors"], one["bytes"]) == (rows[one["table"]], 0, 8192)
        assert one["seconds"] > 0
        assert one["megabytes_per_second"] == pytest.approx(one["bytes"] / one["seconds"] / 1e6)


def test_the_table_has_a_line_for_every_figure(
    stream: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_core, "isas", lambda: [_core.isa()])
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1})
    status, out, _ = run(capsys, *stream, "--seconds", "0.001")
    lines = [line.split()[:3] for line in out.splitlines()[2:]]
    assert status == 0
    isa = _core.isa()
    for table in TABLES:
        own = [[table, isa, "1"], [table, isa, "2"]]
        if "libipt" in _core.engines() and table != "edges":
            own.append([table, "libipt", "1"])
        assert [line for line in lines if line[0] == table] == own


@pytest.mark.skipif("libipt" not in _core.engines(), reason="needs a build with libipt")
def test_difference_from_libipt_is_warned_of(
    stream: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def other(trace: Trace, table: str, **more: Any) -> Figure:
        figure = measure(trace, table, **more)
        wrong = trace.info.engine == "libipt" and table == "branches"
        return replace(figure, rows=figure.rows - 1, whole=True) if wrong else replace(figure)

    monkeypatch.setattr(bench, "measure", other)
    monkeypatch.setattr(_core, "isas", lambda: [_core.isa()])
    status, _, err = run(capsys, *stream, "--seconds", "0.001")
    assert status == 1
    assert "branches: libipt gives" in err
    assert "ptkit verify" in err


def test_long_rounds_are_estimated() -> None:
    trace = opened(512 << 10)
    like = Figure("branches", "ptkit", "", 1, 4 * len(trace.branches()), 0, trace.info.bytes, 1.0, 2)
    part = measure(trace, "branches", threads=1, seconds=1e-9, like=like)
    assert not part.whole
    assert 0 < part.rows < like.rows
    assert part.bytes == trace.info.bytes * part.rows // like.rows


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--made", "some.pt"], "--made takes no FILE"),
        (["missing.pt"], "missing.pt"),
        (["--made", "--seconds", "0"], "0 is not above 0"),
        (["--made", "--seconds", "soon"], "'soon' is not a number"),
    ],
)
def test_misuse_is_one_line_of_bench(
    arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if "--seconds" in arguments:
        with pytest.raises(SystemExit, match="2"):
            main(["bench", *arguments])
    else:
        assert main(["bench", *arguments]) == 2
    err = capsys.readouterr().err
    assert sentence in err
    assert len(err.splitlines()) == 1


def test_missing_code_is_warned_of_by_bench(stream: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = run(capsys, stream[0], "--processor", CPU, "--seconds", "0.001")
    assert status == 0, err
    assert "no rows" in next(line for line in out.splitlines() if line.startswith("instructions"))
    assert "1 error: not everything could be decoded; --image and --code give code" in err


def test_a_decoder_without_time_for_a_row_has_no_ratio(
    stream: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped_at_once(trace: Any, table: str, *, like: Any = None, **options: Any) -> Any:
        figure = measure(trace, table, like=like, **options)
        return figure if like is None else replace(figure, rows=0, bytes=0, whole=False)

    monkeypatch.setattr(bench, "measure", stopped_at_once)
    status, out, err = run(capsys, *stream, "--seconds", "0.001")
    assert status == 0, err
    assert "x libipt" in out
    assert "Error" not in err


def test_the_best_instruction_set_is_taken() -> None:
    assert _core.isas()[-1] == "scalar"
    if "PTKIT_FORCE_ISA" not in os.environ:
        assert _core.isa() == _core.isas()[0]


@pytest.mark.parametrize("isa", ["scalar", "none"])
def test_an_instruction_set_is_forced_or_refused(isa: str) -> None:
    code = (
        "from ptkit import _core, ConfigError\n"
        "try: print(_core.isa())\n"
        "except ConfigError as error: print(error)"
    )
    environment = {**os.environ, "PTKIT_FORCE_ISA": isa}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    expected = isa if isa == "scalar" else "PTKIT_FORCE_ISA=none cannot be had"
    # Importing ptkit chooses, and so refuses.
    assert expected in done.stdout + done.stderr
