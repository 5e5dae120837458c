"""Sums that an index has are those of a decode, and cost none."""

from __future__ import annotations

import json
import os
import random
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compiling import build
from same_rows import assert_same

import ptkit
from ptkit import _core
from ptkit.cli.main import main
from ptkit.decode import index_sums
from ptkit.trace.opening import index as index_module

SUMS: dict[str, Callable[[Any], Any]] = {
    "by function": lambda trace: trace.functions(),
    "by entry": lambda trace: trace.functions(by="entry"),
    "by module": lambda trace: trace.functions(by="module"),
    "tree": lambda trace: trace.call_tree(),
    "edges": lambda trace: trace.edges(),
}


def decodes(trace: Any, question: Callable[[Any], Any]) -> bool:
    before = trace.opened.session.decoded_bytes
    question(trace)
    return bool(trace.opened.session.decoded_bytes > before)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("recorded") / "echo.ptk"
    ptkit.record(["echo", "hello"], output=path, index=True)
    assert Path(f"{path}.ptindex").is_file()
    return path


def test_a_recording_in_a_temporary_file_has_its_index_in_memory() -> None:
    trace = ptkit.record(["true"], index=True)
    assert not decodes(trace, SUMS["tree"])
    assert not Path(f"{trace.source}.ptindex").exists()


@pytest.mark.parametrize("quiet", [False, True])
def test_record_writes_an_index(tmp_path: Path, capfd: pytest.CaptureFixture[str], quiet: bool) -> None:
    path = tmp_path / "true.ptk"
    assert main(["record", "-o", str(path), "--index", *["-q"] * quiet, "--", "true"]) == 0
    assert not decodes(ptkit.open(path), SUMS["edges"])
    assert (f"ptkit: {path}.ptindex: " in capfd.readouterr().err) != quiet


def test_root_does_not_decode_what_a_user_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    of = Path.stat

    def stat(path: Path, **options: Any) -> Any:
        found = of(path, **options)
        return os.stat_result([*found[:4], 1000, *found[5:]]) if path.suffix == ".ptk" else found

    path = tmp_path / "true.ptk"
    with monkeypatch.context() as users:
        users.setattr(Path, "stat", stat)
        assert main(["record", "-o", str(path), "--index", "--", "true"]) == 0
    assert f"`ptkit index {path}` writes the index" in capfd.readouterr().err
    assert not Path(f"{path}.ptindex").exists()


@pytest.mark.parametrize("name", SUMS)
def test_sums_of_an_index_are_those_of_a_decode(recorded: Path, name: str) -> None:
    some, whole = ptkit.open(recorded), ptkit.open(recorded, index=False)
    assert not decodes(some, SUMS[name])
    assert_same(SUMS[name](some), SUMS[name](whole))
    assert decodes(whole, SUMS[name]) == (name == "edges")  # other sums are kept


def test_parts_and_other_frames_are_decoded(recorded: Path) -> None:
    some, whole = ptkit.open(recorded), ptkit.open(recorded, index=False)
    middle = (some.info.first_tsc + some.info.last_tsc) // 2
    for question in (
        lambda trace: trace.functions(time=(None, middle)),
        lambda trace: trace.between(None, middle).functions(),
        lambda trace: trace.functions(inlines=True),
        lambda trace: trace.functions(tails="replaced"),
        lambda trace: trace.between(None, middle).edges(),
        lambda trace: trace.edges(kind="CALL"),
        lambda trace: trace.edges(by="instructions", bins=2),
    ):
        assert decodes(some, question)
        assert_same(question(some), question(whole))


def test_errors_come_with_the_sums(open_trace: Any, loop: Any, tmp_path: Path) -> None:
    path = tmp_path / "loop.pt"
    path.write_bytes(loop.stream(300) + b"\x02\xff" + loop.stream(300, tsc=400_000))
    open_trace(path, images=loop.images()).index()
    some, whole = open_trace(path, images=loop.images()), open_trace(path, images=loop.images(), index=False)
    for question in SUMS.values():
        assert len(question(some).errors) == 1
        assert not decodes(some, question)
        assert_same(question(some), question(whole))


def with_sums(path: Path, sums: bytes) -> Any:
    """The trace with an index of which the sums are these bytes."""
    trace = ptkit.open(path, index=False)
    source = os.fsencode(path)
    index = _core.Index.build(trace.opened.session, resync="ip", threads=1, segment=1 << 20, trace=source)
    trace.open_parts.use_index(index.with_sums(trace.opened.session, resync="ip", trace=source, sums=sums))
    return trace


def bytes_of(recorded: Path) -> tuple[dict[str, Any], bytes]:
    """The head of an index's sums, and the cells behind it."""
    sums = ptkit.open(recorded).opened.settings.index.sums().tobytes()
    end = 8 + int.from_bytes(sums[:8], "little")
    return json.loads(sums[8:end]), sums[end:]


def joined(head: Any, cells: bytes) -> bytes:
    text = head if isinstance(head, bytes) else json.dumps(head).encode()
    return len(text).to_bytes(8, "little") + text + cells


def test_hostile_sums_are_not_used(recorded: Path) -> None:
    head, cells = bytes_of(recorded)
    whole = SUMS["by function"](ptkit.open(recorded, index=False))
    tables = head["tables"]
    size = tables["function"]["packed"]
    bomb = zlib.compress(bytes(1 << 26), 1)
    function = tables["function"]
    columns = function["columns"]

    def changed(**members: Any) -> dict[str, Any]:
        return head | {"tables": tables | {"function": function | members}}

    hostile = {
        "no head": b"",
        "a head that is too long": (1 << 60).to_bytes(8, "little") + cells,
        "no JSON": joined(b"[" * 100_000, cells),
        "no object": joined([], cells),
        "another version": joined(head | {"version": 0}, cells),
        "other names": joined(head | {"identity": head["identity"] ^ 1}, cells),
        "an unknown table": joined(head | {"tables": tables | {"branches": function}}, cells),
        "too many rows": joined(changed(rows=1 << 50), cells),
        "no number": joined(changed(rows="1"), cells),
        "fewer columns": joined(changed(columns={"count": columns["count"]}), cells),
        "objects": joined(changed(columns=columns | {"count": ["|O", columns["count"][1]]}), cells),
        "too many cells": joined(
            changed(rows=1 << 40, columns={name: [one[0], 1 << 40] for name, one in columns.items()}), cells
        ),
        "no cells": joined(head, b""),
        "fewer bytes": joined(changed(packed=size - 1), cells),
        "negative bytes": joined(changed(packed=-size), cells),
        "bytes that become many": joined(
            head | {"tables": {"function": function | {"packed": len(bomb)}}, "states": []}, bomb
        ),
        "states of other streams": joined(head | {"states": head["states"] * 2}, cells),
        "files that are none": joined(head, b"\x7f" * len(cells)),
    }
    for sums in hostile.values():
        trace = with_sums(recorded, sums)
        assert_same(SUMS["by function"](trace), whole)
    trace = with_sums(recorded, joined(head, cells))
    assert trace.opened.indexed.is_current
    assert not decodes(trace, SUMS["by function"])


def test_damaged_sums_are_made_anew(recorded: Path, tmp_path: Path) -> None:
    path = tmp_path / "echo.ptk"
    path.write_bytes(recorded.read_bytes())
    made = ptkit.open(path).index()
    file = Path(str(made.path))
    good = file.read_bytes()
    file.write_bytes(good[:-9] + bytes([good[-9] ^ 1]) + good[-8:])
    trace = ptkit.open(path)
    assert trace.opened.settings.index is not None
    assert decodes(trace, SUMS["edges"])
    trace.index()
    assert file.read_bytes() == good
    assert not decodes(ptkit.open(path), SUMS["edges"])


def test_large_sums_are_left_out(recorded: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_sums, "_MOST_BYTES", 20_000)
    trace = ptkit.open(recorded, index=False)
    trace.index(save=False)
    asked = {name: decodes(trace, question) for name, question in SUMS.items() if name != "by module"}
    assert any(asked.values())
    for question in SUMS.values():
        assert_same(question(trace), question(ptkit.open(recorded, index=False)))


def test_windows_of_threads_and_processes_are_those_of_a_decode(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With segments so small that each window begins at one of them."""
    program, path = build("threads", tmp_path), tmp_path / "threads.ptk"
    ptkit.record([str(program)], output=path)
    monkeypatch.setattr(index_module, "SEGMENT", 4096)
    some, whole = ptkit.open(path, index=False), ptkit.open(path, index=False)
    some.index(save=False)
    assert any(some.opened.indexed.states(range(len(some.streams))))
    for percent in ((0, 3), (20, 25), (60, 60.5), (90, 100)):
        views = [trace.between(percent=percent) for trace in (some, whole)]
        assert_same(*(view.calls() for view in views))
        for question in (*SUMS.values(), lambda view: view.functions(whole_calls=True)):
            assert_same(*(question(view) for view in views))


def test_hostile_states_do_no_harm(recorded: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_module, "SEGMENT", 4096)
    trace = ptkit.open(recorded, index=False)
    trace.index(save=False)
    (good,) = trace.opened.indexed.states([0])
    source, identity = os.fsencode(recorded), _core.sums_identity(trace.opened.session)
    chance = random.Random(3)
    for _ in range(60):
        state = bytearray(good)
        for _ in range(chance.choice([1, 1, 5])):
            state[chance.randrange(len(state))] = chance.choice([0, 1, 0x7F, 0xFF])
        sums = index_sums.encoded({}, [np.frombuffer(state, np.uint8)], identity)
        index = _core.Index.build(
            trace.opened.session, resync="ip", threads=1, segment=4096, trace=source
        ).with_sums(trace.opened.session, resync="ip", trace=source, sums=sums)
        trace.open_parts.use_index(index)
        for percent in ((50, 55), (98, 99)):
            trace.between(percent=percent).functions()
            trace.between(percent=percent).calls()
