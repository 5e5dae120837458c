"""What a page was made of: the words and arguments that it shows make the same page again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compiling import build
from executed_parts import executed_part
from golden_recordings import open_recording
from rounds import needs_emulator
from view_pages import PageData

import ptkit
from ptkit.cli import main


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> ptkit.Trace:
    """A recording of several threads, with debug information."""
    folder = tmp_path_factory.mktemp("selected")
    program = build("threads", folder, "-g")
    return ptkit.record([program], output=folder / "out.ptk", backend="emulator", quiet=True)


def selections(trace: ptkit.Trace) -> list[dict[str, Any]]:
    first, last = trace.info.first_tsc, trace.info.last_tsc
    assert first is not None
    assert last is not None
    tid = trace.info.threads[-1][1]
    ip = int(trace.blocks(columns=["ip"])["ip"][100])
    return [
        {},
        {"tid": tid},
        {"stream": [0, 1]},
        {"time": (first + (last - first) // 4, first + (last - first) // 2)},
        {"module": "threads"},
        {"symbol": ["main", "mem*"]},
        {"ip": (ip, ip + 4096)},
        {"tid": tid, "inlines": True},
        {"tid": tid, "instructions": (100, 20_000)},
        {"instructions": (None, 5000)},
    ]


@needs_emulator
@pytest.mark.parametrize("number", range(10))
def test_words_and_arguments_make_the_same_page(
    number: int, recording: ptkit.Trace, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    query = selections(recording)[number]
    wanted = PageData(recording.view(**query))
    shown = wanted.runs[0]["reproduce"]
    out = tmp_path / "page.html"
    words = ["view", recording.info.source, *shown["options"], "--no-open", "-o", str(out)]
    assert main(words) == 0, capsys.readouterr().err
    arguments = eval(f"dict({shown['query']})")
    for found in (PageData(out), PageData(recording.view(**arguments))):
        assert found.runs[0]["functions"] == wanted.runs[0]["functions"]
        assert found.columns()["id"].tolist() == wanted.columns()["id"].tolist()
        assert found.runs[0]["reproduce"] == shown


@needs_emulator
def test_parts_say_how_they_were_selected(recording: ptkit.Trace) -> None:
    part = executed_part(recording, 10, 60)
    page = PageData(part.view())
    again = PageData(recording.view(**eval(f"dict({page.runs[0]['reproduce']['query']})")))
    assert again.runs[0]["functions"] == page.runs[0]["functions"]
    functions = part.functions()
    assert page.runs[0]["functions"]["self_instructions"] == functions["self_instructions"].tolist()
    events = recording.events(stream=0)
    slice_ = recording.slice(after=events[:1], before=events[-1:])
    page = PageData(slice_.view())
    assert page.runs[0]["functions"]["calls"] == slice_.functions()["count"].tolist()
    assert page.runs[0]["functions"]["instructions"] == slice_.functions()["instructions"].tolist()
    assert any("a part between two events" in note for note in page.runs[0]["notes"])


def in_range(page: PageData, begin: int, end: int, track: int | None) -> dict[str, int]:
    """Instructions of functions alone between two positions, as the page adds them up."""
    columns, functions = page.columns(), page.runs[0]["functions"]
    rows = np.arange(len(columns["id"])) if track is None else np.flatnonzero(columns["track"] == track)
    sums: dict[str, int] = {}
    open_: list[int] = []
    for row in rows.tolist():
        del open_[int(columns["depth"][row]) :]
        first = int(columns["begin"][row])
        last = first + int(columns["duration"][row])
        inside = max(0, min(last, end) - max(first, begin))
        for function, part in ((columns["function"][row], inside), *((one, -inside) for one in open_[-1:])):
            sums[function] = sums.get(function, 0) + part
        open_.append(int(columns["function"][row]))
    full = [one or name for one, name in zip(functions["full"], functions["name"], strict=True)]
    named: dict[str, int] = {}
    for function, own in sums.items():
        named[full[function]] = named.get(full[function], 0) + own
    return {name: own for name, own in named.items() if own}


def own_instructions(functions: Any) -> dict[str, int]:
    sums: dict[str, int] = {}
    for name, own in zip(
        functions["function_full"].tolist(), functions["self_instructions"].tolist(), strict=True
    ):
        sums[name] = sums.get(name, 0) + own
    return {name: own for name, own in sums.items() if own}


def ranges_of(page: PageData, track: int | None) -> Iterator[tuple[int, int]]:
    """Ranges at odd places: parts of the track, and beyond its end."""
    first, last = page.runs[0]["range"] if track is None else page.runs[0]["tracks"][track]["range"]
    third = (last - first) // 3
    yield from ((first + 1, first + third), (first + third, last - 7), (last - third, last + 100))


@pytest.mark.parametrize(
    ("name", "query", "selections"),
    [
        ("thread", {}, [[]]),
        ("timed", {}, [[["tid", 108]]]),
        (
            "all",
            {},
            [
                [["tid", 96], ["stream", 0]],
                [["tid", 99]],
                [["tid", 96], ["stream", 1]],
                [["tid", 97]],
            ],
        ),
        ("both", {}, [None]),  # kernel code, of which a part is of no known thread
        ("both", {"tid": 102}, [[["tid", 102]]]),
        ("all", {"tid": 96}, [[["tid", 96], ["stream", 0]], [["tid", 96], ["stream", 1]]]),
    ],
)
def test_instructions_of_tracks_are_selected(
    name: str, query: dict[str, Any], selections: list[Any], tmp_path: Path
) -> None:
    trace = open_recording(name, tmp_path)
    page = PageData(trace.view(of="instructions", **query))
    run = page.runs[0]
    assert [track["selection"] for track in run["tracks"]] == selections
    assert run["reproduce"]["selects_all"] == (name == "thread")
    for track, selection in enumerate(selections):
        if selection is None:
            continue
        for begin, end in ranges_of(page, track):
            found = trace.between(instructions=(begin, end)).functions(**{**query, **dict(selection)})
            assert own_instructions(found) == in_range(page, begin, end, track)


@needs_emulator
def test_instructions_of_all_tracks_are_selected(recording: ptkit.Trace) -> None:
    page = PageData(recording.view(of="instructions"))
    tracks = page.runs[0]["tracks"]
    assert len(tracks) > 2
    assert page.runs[0]["reproduce"]["selects_all"]
    assert [one["selection"] for one in tracks] == [[["tid", one["tid"]]] for one in tracks]
    for begin, end in ranges_of(page, None):
        found = recording.between(instructions=(begin, end)).functions()
        assert own_instructions(found) == in_range(page, begin, end, None)
    for begin, end in ranges_of(page, 1):
        found = recording.between(instructions=(begin, end)).functions(tid=tracks[1]["tid"])
        assert own_instructions(found) == in_range(page, begin, end, 1)


@needs_emulator
def test_instructions_of_a_thread_with_several_stacks_are_not_selected(tmp_path: Path) -> None:
    program = build("coroutines", tmp_path)
    trace = ptkit.record([program], output=tmp_path / "out.ptk", backend="emulator", quiet=True)
    run = PageData(trace.view(of="instructions")).runs[0]
    assert any(one["stack"] for one in run["tracks"])
    assert not run["reproduce"]["selects_all"]
    assert {one["selection"] for one in run["tracks"]} == {None}
