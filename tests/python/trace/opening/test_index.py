"""What is decoded by an index is what is decoded without one."""

from __future__ import annotations

import json
import random
import shutil
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from damage import damaged
from same_rows import assert_same
from warned import of_code, trace_warnings

import ptkit
from ptkit import decode
from ptkit.cli.main import main
from ptkit.table import concatenate
from ptkit.trace.opening import index as index_module

TABLES = ("branches", "blocks", "instructions", "events", "edges", "errors", "gaps")


def rows(trace: Any, table: str, **query: Any) -> Any:
    return decode.read(trace._plan(table, query))


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Segments of 1 KiB."""
    monkeypatch.setattr(index_module, "SEGMENT", 1024)


def check(open_trace: Any, source: Any, seed: int = 0, **options: Any) -> Any:
    """Compare tables of many selections, with and without an index."""
    chance = random.Random(seed)
    whole, some = (open_trace(source, index=False, **options) for _ in range(2))
    assert some.index(save=False).segments > len(whole.streams)
    blocks = whole.blocks()
    times = blocks["tsc"][blocks["time_known"]]
    for _ in range(3):
        for table in TABLES:
            query: dict[str, Any] = {}
            if len(times) and chance.random() < 0.6:
                begin = int(chance.choice(times))
                query["time"] = (begin, begin + chance.choice([1, 1000, 100_000]))
            if not query or chance.random() < 0.4:
                ip = int(chance.choice(blocks["ip"]))
                query["ip"] = (ip, ip + chance.choice([1, 64, 5000]))
            assert_same(rows(some, table, **query), rows(whole, table, **query))
            views = [
                trace.between(*query["time"]) if "time" in query else trace.touching(query["ip"])
                for trace in (some, whole)
            ]
            assert_same(rows(views[0], table), rows(views[1], table))
    for _ in range(3 if whole.info.first_tsc is not None else 0):
        check_calls(some, whole, chance)
    return some


def check_calls(some: Any, whole: Any, chance: random.Random) -> None:
    """Compare what ran in a part of the trace."""
    span = whole.info.last_tsc - whole.info.first_tsc
    begin, end = sorted(whole.info.first_tsc + int(chance.random() * span) for _ in range(2))
    views = [trace.between(begin, end) for trace in (some, whole)]
    for by in ("function", "entry", "module"):
        assert_same(*(view.functions(by=by) for view in views))
    assert_same(*(view.call_tree() for view in views))
    assert_same(*(view.calls() for view in views))
    assert_same(*(view.calls(columns=["id"]) for view in views))
    if len(views[0].calls()):
        assert_same(*(concatenate(list(view.iter_calls(rows=100))) for view in views))
    assert_same(*(trace.functions(time=(begin, end)) for trace in (some, whole)))


@pytest.mark.parametrize("engine", ["ptkit", "simple"])
@pytest.mark.parametrize("damages", [0, 30])
def test_index_of_a_synthetic_stream_changes_no_row(
    open_trace: Any, loop: Any, small: None, engine: str, damages: int
) -> None:
    stream = damaged(loop.stream(8000), damages)
    check(open_trace, stream, images=loop.images(), engine=engine)


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
def test_rows_of_indexed_streams_are_those_without_an_index(loop: Any, small: None, threads: int) -> None:
    stream = loop.stream(9000)
    parts = (stream, damaged(stream, 20), b"", stream[: len(stream) // 3], stream)

    def opened() -> Any:
        bundle = ptkit._core.Bundle()
        bundle.add_code(loop.BASE, loop.CODE)
        for part in parts:
            bundle.add_stream(part)
        return ptkit.Trace(bundle, decode.Settings())

    whole, some = opened(), opened()
    some.index(save=False)
    for table in TABLES:
        assert_same(rows(some, table, threads=threads), rows(whole, table, threads=1))


def test_index_keeps_errors_without_gaps(open_trace: Any, loop: Any, packets: Any, small: None) -> None:
    # A TIP.PGD that does not fit its conditional branch is an error; tracing goes on after it.
    elsewhere = loop.stream(200) + packets.pgd(0x9999)
    some = check(open_trace, elsewhere * 20, images=loop.images())
    assert some.errors.named("code") == ["TNT_MISMATCH"] * 20
    assert len(some.gaps) == 0


@pytest.mark.parametrize("name", ["mruby", "avscript_32"])
def test_index_of_a_hardware_trace_changes_no_row(
    corpus: Path, open_trace: Any, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(index_module, "SEGMENT", 1 << 16)
    check(open_trace, corpus / "libxdc" / name)


@pytest.mark.parametrize("timing", ["mtc", "cyc"])
def test_index_of_a_recording_changes_no_row(
    brief: str, tmp_path: Path, open_trace: Any, small: None, timing: str
) -> None:
    path = tmp_path / "brief.ptk"
    timings = {"mtc": ["tsc", "mtc"], "cyc": ["tsc", "mtc", "cyc"]}[timing]
    ptkit.Recorder([brief, "loop", "1500"], path, backend="step", timing=timings, psb_period=2048).run()
    check(open_trace, path)


@pytest.fixture
def indexed(open_trace: Any, loop: Any, small: None, tmp_path: Path) -> Any:
    path = tmp_path / "loop.pt"
    path.write_bytes(loop.stream(8000))
    trace = open_trace(path, images=loop.images())
    assert trace.index().path == f"{path}.ptindex"
    return open_trace(path, images=loop.images())


def test_between_selects_by_time(indexed: Any, open_trace: Any, loop: Any) -> None:
    whole = open_trace(indexed.source, images=loop.images(), index=False).branches()
    view = indexed.between(500_000, 512_000)
    mask = whole["time_known"] & (whole["tsc"] >= 500_000) & (whole["tsc"] < 512_000)
    part = view.branches()
    assert 0 < len(part) == mask.sum()
    for name in whole.available:
        assert np.array_equal(part[name], whole[name][mask]), name
    assert "between 500000 and 512000" in repr(view)
    assert view.trace is indexed
    parts = [part[np.arange(len(part))] for part in view.iter_branches(rows=5, reuse=True)]
    assert np.array_equal(concatenate(parts)["tsc"], part["tsc"])
    assert int(view.edges()["count"].sum()) == len(part)
    assert len(view.errors) == len(view.gaps) == 0
    assert len(view.branches(time=(0, 500_000))) == 0
    inside = view.branches(time=(505_000, None), ip=(loop.JMP, loop.JMP + 1))
    assert 0 < len(inside) < len(part)


def test_index_limits_decoding_to_selected_parts(indexed: Any) -> None:
    plan = indexed.between(500_000, 512_000)._plan("branches", {})
    reader = plan.reader()
    positions = []
    for _ in range(600):
        reader.read(1)
        positions.append(reader.bytes_done)
    assert indexed.info.bytes / 3 < min(positions)
    assert max(positions) - min(positions) < 3 * 1024


def test_touching_selects_by_address(indexed: Any, loop: Any) -> None:
    assert len(indexed.touching(loop.JMP).instructions()) == 8000
    assert len(indexed.touching((loop.JMP, loop.JMP + 2)).instructions(time=(None, 400_000))) < 4000
    nothing = indexed.touching([(0x5000, 0x6000), (1, 2)])
    assert len(nothing.branches()) == len(nothing.events()) == 0
    with pytest.raises(ptkit.SymbolError):
        indexed.touching("main")
    with pytest.raises(ptkit.ConfigError, match="is empty"):
        indexed.touching((5, 5))
    with pytest.raises(ptkit.ConfigError, match="must not be above"):
        indexed.between(5, 1)


def test_errors_of_a_view_are_selected(open_trace: Any, loop: Any) -> None:
    stream = loop.stream(3000) + b"\x02\xff" + loop.stream(3000, tsc=400_000)
    trace = open_trace(stream, images=loop.images())
    for _ in range(2):
        assert len(trace.branches(time=(1000, 1500)).errors) == len(trace.errors) == 1
        assert len(trace.between(1000, 1500).branches().errors) == 0
        assert len(trace.between(1000, 1500).errors) == 0
        assert len(trace.between(1000, None).branches().errors) == 1
        trace.index(save=False)


def test_index_of_another_trace_is_not_used(indexed: Any, loop: Any, tmp_path: Path) -> None:
    path, file = Path(indexed.source), Path(indexed.source + ".ptindex")
    good = file.read_bytes()
    selected = len(indexed.branches(time=(500_000, 512_000)))

    def expect_warning(match: str, **options: Any) -> None:
        options.setdefault("images", loop.images())
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            trace = ptkit.open(path, **options)
        assert trace.opened.settings.index is None
        (unusable,) = of_code(trace_warnings(caught), "INDEX_UNUSABLE")
        assert match in unusable.arguments[0]

    file.write_bytes(good[:-1])
    expect_warning("damaged")
    file.write_bytes(b"")
    expect_warning("damaged")
    file.write_bytes(good[:8] + b"\xff" + good[9:])
    expect_warning("another version")
    for decoder in range(int.from_bytes(good[12:16], "little")):  # versions of the decoder's state
        file.write_bytes(good[:12] + decoder.to_bytes(4, "little") + good[16:])
        expect_warning("another version")
    file.write_bytes(good)
    expect_warning("other images or settings", resync="psb")
    expect_warning("other images or settings", images=[{loop.BASE: loop.CODE + b"\x90"}])
    expect_warning("other images or settings", tsc_ctc_ratio=(3, 2))
    changed = bytearray(path.read_bytes())
    changed[len(changed) // 3] ^= 0x40
    path.write_bytes(changed)
    expect_warning("of another trace")
    path.write_bytes(loop.stream(9000))
    expect_warning("of another trace")
    path.write_bytes(loop.stream(8000))  # as it was, at another time
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        again = ptkit.open(path, images=loop.images())
    assert again.opened.settings.index is not None
    assert len(again.branches(time=(500_000, 512_000))) == selected
    assert again.index().path == str(file)


def test_damaged_index_is_built_anew(indexed: Any, open_trace: Any, loop: Any) -> None:
    file = Path(indexed.source + ".ptindex")
    good = file.read_bytes()
    file.write_bytes(good[: len(good) // 2])
    trace = open_trace(indexed.source, images=loop.images())
    trace.index()
    assert len(file.read_bytes()) == len(good)
    assert sorted(path.name for path in file.parent.iterdir()) == ["loop.pt", "loop.pt.ptindex"]


def test_index_is_written_beside_the_trace(open_trace: Any, loop: Any, tmp_path: Path) -> None:
    trace = open_trace(loop.stream(300), images=loop.images())
    with pytest.raises(ptkit.ConfigError, match="give a path for the index"):
        trace.index()
    assert trace.index(save=False).path is None
    path = tmp_path / "loop.pt"
    path.write_bytes(loop.stream(300))
    elsewhere = tmp_path / "elsewhere"
    made = open_trace(path, images=loop.images()).index(elsewhere)
    assert (made.path, made.size_bytes) == (str(elsewhere), elsewhere.stat().st_size)
    assert open_trace(path, images=loop.images()).opened.settings.index is None
    assert open_trace(path, images=loop.images(), index=elsewhere).opened.settings.index is not None
    with pytest.raises(ptkit.OpenError):
        open_trace(path, images=loop.images()).index(tmp_path / "no" / "such")
    callback = open_trace(path, image_callback=lambda *_: None)
    with pytest.raises(ptkit.ConfigError, match="callback"):
        callback.index()


def test_index_verb_writes_an_index(loop: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, code = tmp_path / "loop.pt", tmp_path / "code"
    path.write_bytes(loop.stream(300))
    code.write_bytes(loop.CODE)
    words = ["index", str(path), "--code", f"{code}@{loop.BASE:#x}", "--processor", "6/158"]
    assert main([*words, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["path"], document["segments"]) == (f"{path}.ptindex", 1)
    assert main(words) == 0
    assert capsys.readouterr().out.endswith(", 1 segment\n")


def test_index_of_a_folder_is_beside_it(corpus: Path, open_trace: Any, tmp_path: Path) -> None:
    folder = tmp_path / "mruby"
    shutil.copytree(corpus / "libxdc" / "mruby", folder, copy_function=shutil.copyfile)
    assert open_trace(folder).index().path == f"{folder}.ptindex"
    assert open_trace(folder).opened.settings.index is not None
    with (folder / "trace").open("r+b") as file:
        file.seek(400_000)
        file.write(b"\x02\xff")
    assert open_trace(folder).opened.settings.index is None
