"""What a page was made of: the words and arguments that it shows make the same page again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from compiling import build
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
    ]


@needs_emulator
@pytest.mark.parametrize("number", range(8))
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
    part = recording.between(percent=(10, 60))
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
