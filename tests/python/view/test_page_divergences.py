"""Marks of a page with two runs: where they part, by instructions and by time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compiling import PROGRAMS, compiled
from rounds import needs_emulator
from view_browser import DECODED, Browser, needs_browser
from view_pages import PageData

import ptkit
from ptkit.view import divergences

SOURCE = PROGRAMS / "branches" / "parting.c"
TRACK, POSITION, NUMBER, WHERE, WAY, OWN = range(6)

pytestmark = needs_emulator


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[ptkit.Trace]:
    """Of one thread; the second one takes another way once."""
    folder = tmp_path_factory.mktemp("parting")
    program = compiled(folder / "parting", "-g", "-O1", "-static", "-pthread", "-Wl,--build-id", SOURCE)
    return [
        ptkit.record([program, word], output=folder / f"{word}.ptk", backend="emulator", quiet=True)
        for word in ("number", "nothing")
    ]


def marks_of(page: ptkit.view.Page) -> list[list[list[Any]]]:
    return [run["divergences"] for run in PageData(page).runs]


def test_marks_are_the_divergences(runs: list[ptkit.Trace]) -> None:
    table = ptkit.diff(*runs).divergences
    assert np.asarray(table["is_own"]).any()
    for side, marks in zip("ab", marks_of(runs[0].view(runs[1], of="instructions")), strict=True):
        assert [mark[POSITION] for mark in marks] == table[f"{side}_instruction"].tolist()
        assert [mark[NUMBER] for mark in marks] == list(range(len(table)))
        assert [mark[WHERE] for mark in marks] == table.named("where")
        assert [mark[OWN] for mark in marks] == table["is_own"].tolist()
        ways = zip(table.named(f"{side}_way"), table.named(f"{side}_target"), strict=True)
        assert [mark[WAY] for mark in marks] == [f"{way} {target}" for way, target in ways]


def test_by_time_marks_are_at_the_times_of_branches(runs: list[ptkit.Trace]) -> None:
    table = ptkit.diff(*runs).divergences
    page = PageData(runs[0].view(runs[1], of="time"))
    for side, trace, run in zip("ab", runs, page.runs, strict=True):
        expected = []
        for stream, number in zip(table[f"{side}_stream"], table[f"{side}_instruction"], strict=True):
            rows = trace.branches(columns=["instruction", "tsc"], stream=int(stream))
            [time, *_] = rows["tsc"][np.asarray(rows["instruction"]) == number].tolist()
            expected.append(time - int(run["origin"]))
        assert [mark[POSITION] for mark in run["divergences"]] == expected


def test_one_run_has_no_marks(runs: list[ptkit.Trace]) -> None:
    assert marks_of(runs[0].view()) == [[]]
    assert marks_of(runs[0].view(runs[0])) == [[], []]


def test_marks_outside_of_a_part_are_left_out_and_counted(runs: list[ptkit.Trace]) -> None:
    table = ptkit.diff(*runs).divergences
    first = int(table["a_instruction"][np.asarray(table["is_own"])][0])
    parts = [trace.between(instructions=(0, first - 10)) for trace in runs]
    page = parts[0].view(parts[1], of="instructions")
    assert all(mark[POSITION] < first for marks in marks_of(page) for mark in marks)


def test_of_many_the_programs_own_are_kept(runs: list[ptkit.Trace], monkeypatch: pytest.MonkeyPatch) -> None:
    table = ptkit.diff(*runs).divergences
    own = int(np.count_nonzero(table["is_own"]))
    monkeypatch.setattr(divergences, "_MOST", own)
    page = runs[0].view(runs[1], of="instructions")
    assert [mark[OWN] for mark in marks_of(page)[0]] == [True] * own
    if len(table) > own:
        assert any(f"{len(table) - own:,} are not marked" in note for note in page.notes)


def test_redacted_marks_have_no_lines(runs: list[ptkit.Trace]) -> None:
    page = runs[0].view(runs[1], redact=True)
    for marks in marks_of(page):
        assert marks
        assert all(SOURCE.name not in mark[WHERE] and not mark[WAY] for mark in marks)


def test_threads_that_share_a_stream_have_no_positions_by_instructions(loop: Any) -> None:
    bundle = ptkit._core.Bundle()
    bundle.add_code(loop.BASE, loop.CODE)
    bundle.add_stream(loop.stream(10), pid=1, tid=1)
    bundle.add_stream(loop.stream(10, psb_every=2), pid=1, tid=2, switches=[(1300, 1, 3, 0)])
    page = ptkit.Trace(bundle, ptkit.decode.Settings()).view(of="instructions")
    [run] = page._document.runs
    tids = [track.tid for track in run.timeline.tracks]
    assert {1, 2, 3} <= set(tids)
    streams, threads = np.array([0, 1, 1, 1]), np.array([1, 2, 3, 1])
    assert divergences._tracks_of(run, streams, threads).tolist() == [tids.index(1), -1, -1, -1]


@pytest.mark.skipif(*needs_browser[0].args, **needs_browser[0].kwargs)
@pytest.mark.skipif(*needs_browser[1].args, **needs_browser[1].kwargs)
def test_keys_and_rows_show_a_divergence(runs: list[ptkit.Trace], tmp_path: Path) -> None:
    runs[0].view(runs[1]).save(tmp_path / "page.html")
    spoken = ["until", "document.getElementById('spoken').innerText"]
    actions = [
        ["press", "."],
        spoken,
        ["click", ".tabs .divergences"],
        ["value", "document.querySelector('section[aria-label=Divergences]').innerText"],
    ]
    *_, said, rows = Browser(tmp_path / "page.html", DECODED, *actions).results
    where = ptkit.diff(*runs).divergences.named("where")
    assert said.startswith(f"divergence 0: {where[0]}")
    assert all(one in rows for one in where[:3])
