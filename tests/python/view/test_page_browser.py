"""The page in Chromium: by mouse and by keyboard, without requests, and with hostile names."""

from __future__ import annotations

import io
import json
import re
import shlex
import shutil
from collections.abc import Iterable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from compiling import build
from executed_parts import time_at
from golden_recordings import open_recording
from rounds import needs_emulator
from small_elf import elf
from view_browser import DECODED, SELECTION, Browser, needs_browser
from view_pages import PageData

import ptkit
from ptkit.cli import main

ROUNDS = 7
WORDS = ("command", "Python-line")
DETAILS = ["until", "document.querySelector('section[aria-label=Selection] [role=tab]') !== null"]
SPOKEN = ["until", "document.getElementById('spoken').innerText"]

pytestmark = needs_browser


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a recording of counted loops, and its page."""
    folder = tmp_path_factory.mktemp("page")
    program = build("counted_loops", folder)
    ptkit.record([program, str(ROUNDS)], output=folder / "loops.ptk", backend="emulator", quiet=True)
    assert main(["view", str(folder / "loops.ptk"), "-o", str(folder / "page.html"), "--no-open"]) == 0
    return folder


def functions_of(folder: Path, **query: Any) -> dict[str, tuple[int, int, int]]:
    """Calls, instructions alone and with callees of each function."""
    functions = ptkit.open(folder / "loops.ptk").functions(**query)
    names = ("count", "self_instructions", "instructions")
    rows = zip(functions.named("function"), *(functions[name].tolist() for name in names), strict=True)
    return {name: (count, own, whole) for name, count, own, whole in rows}


def numbers(text: str) -> list[int]:
    return [int(number.replace(",", "")) for number in re.findall(r"\b\d[\d,]*\b", text)]


@needs_emulator
def test_functions_have_their_totals(folder: Path) -> None:
    texts = "[...document.querySelectorAll('section.functions tbody tr[id]')].map(row => row.innerText)"
    _, shown = Browser(folder / "page.html", DECODED, ["size", 1280, 4000], ["value", texts]).results
    expected = functions_of(folder)
    rows = [row.split("\t") for row in shown]
    unique = [row for row in rows if row[0] in expected]  # equal names have their files and RVAs, too
    assert len(unique) > 10
    for name, _, *amounts in unique:
        assert tuple(numbers(" ".join(amounts))) == expected[name], name


@needs_emulator
def test_search_finds_every_slice(folder: Path) -> None:
    actions = [["press", "/"], ["type", "leaf"], ["press", "Enter"]]
    found = ["value", "document.querySelector('section[aria-label=Search] [role=status]').innerText"]
    *_, said = Browser(folder / "page.html", DECODED, *actions, found).results
    assert numbers(said)[-1] == functions_of(folder)["leaf"][0] == 100 * ROUNDS


@needs_emulator
def test_a_selected_function_is_reproduced(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = [["focus", "input[aria-label='Filter functions']"], ["type", "odd"], ["click", "#functions-0"]]
    words = ["value", "document.querySelector('section[aria-label=Selection] code.command').innerText"]
    line = ["value", "document.querySelector('section[aria-label=Selection] code.Python-line').innerText"]
    _, said, command, python = Browser(folder / "page.html", DECODED, *chosen, SELECTION, words, line).results
    expected = functions_of(folder)["odd"]
    found = re.search(r"calls\n([\d,]+)\nself\n([\d,]+) instructions\ntotal\n([\d,]+) instructions", said)
    assert found is not None, said
    assert tuple(int(text.replace(",", "")) for text in found.groups()) == expected
    monkeypatch.chdir(folder)
    program, *arguments = shlex.split(command)
    assert program == "ptkit"
    printed = io.StringIO()
    with redirect_stdout(printed):
        assert main([*arguments, "--json"]) == 0
    rows = [json.loads(text) for text in printed.getvalue().splitlines()]
    (row,) = (one for one in rows if one.get("function") == "odd")
    assert (row["count"], row["self_instructions"], row["instructions"]) == expected
    table = eval(python, {"ptkit": ptkit})
    assert table["count"].tolist() == [expected[0]]


@needs_emulator
@pytest.mark.parametrize("of", ["time", "instructions"])
def test_slow_against_fast_is_reproduced(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, of: str
) -> None:
    """Calls are slow by what the axis has, and so they are in the command and in the Python line."""
    ptkit.open(folder / "loops.ptk").view(of=of).save(tmp_path / "page.html")
    page = PageData(tmp_path / "page.html")
    (name, *_) = (
        page.runs[0]["functions"]["name"][number] for number, one in page.details().items() if one["slow"]
    )
    search = [["press", "/"], ["type", name], *[["press", "Tab"]] * 3, ["press", "Enter"]]
    focused = [["until", "document.activeElement.getAttribute('role') === 'tabpanel'"], DETAILS]
    tab = [*[["press", "Tab"]] * 5, ["press", "Enter"]]
    last = "[...document.querySelectorAll('section[aria-label=Selection] code.{}')].at(-1).innerText"
    shown = [SELECTION, *(["value", last.format(one)] for one in WORDS)]
    actions = [DECODED, *search, *focused, *tab, *shown]
    *_, said, command, python = Browser(tmp_path / "page.html", *actions).results
    monkeypatch.chdir(folder)
    found = eval(python, {"ptkit": ptkit})
    assert found.by == of
    assert f"{len(found.slow):,} slow one" in said
    printed = io.StringIO()
    with redirect_stdout(printed):
        assert main(shlex.split(command)[1:]) == 0
    assert f"{name}: " in printed.getvalue().splitlines()[0]
    assert f"{len(found.slow):,} slow one" in printed.getvalue()


@needs_emulator
def test_a_range_of_everything_has_all_instructions(folder: Path) -> None:
    actions = [["drag", [200, 130], [1255, 140], "Shift"], SELECTION]
    *_, said = Browser(folder / "page.html", DECODED, *actions).results
    row = re.search(r"^odd\t(.*)$", said, re.M)
    assert row is not None, said
    calls, own, _, whole = row[1].split("\t")
    assert (*numbers(calls), *numbers(own), *numbers(whole)) == functions_of(folder)["odd"]


SUMS = "[...document.querySelectorAll('section[aria-label=Selection] .range tbody tr[id]')]"
CHOOSE = """(() => {{
  const tracks = document.querySelector('section[aria-label=Selection] .range select');
  tracks.value = '{}';
  tracks.dispatchEvent(new Event('change', {{ bubbles: true }}));
}})()"""


def is_reproduced(page: Path, actions: list[list[Any]], monkeypatch: pytest.MonkeyPatch) -> str:
    """Whether command and Python line of a range give the sums that are shown; the command."""
    monkeypatch.chdir(page.parent)
    last = "document.querySelector('section[aria-label=Selection] .range code.{}')"
    shown = [["until", f"{last.format(WORDS[0])} !== null"], ["value", f"{SUMS}.map(row => row.innerText)"]]
    shown += (["value", f"{last.format(one)}.innerText"] for one in WORDS)
    *_, rows, command, python = Browser(page, DECODED, ["size", 1280, 4000], *actions, *shown).results
    expected: dict[str, tuple[int, ...]] = {}
    for row in rows:
        name, _, own, _, whole = row.split("\t")
        if not re.search(r" \(.*\)| #\d", name):  # equal names have their files, too
            expected[name] = (*numbers(own), *numbers(whole))
    assert len(expected) > 3

    def check(rows: Iterable[tuple[str, int, int]]) -> None:
        found = {name: sums for name, *sums in rows}
        assert {name: tuple(found[name]) for name in expected} == expected

    printed = io.StringIO()
    with redirect_stdout(printed):
        assert main([*shlex.split(command)[1:], "--json"]) == 0
    members = ("function", "self_instructions", "instructions")
    sums = [json.loads(text) for text in printed.getvalue().splitlines()[1:]]
    check([tuple(one[name] for name in members) for one in sums])
    table = eval(python, {"ptkit": ptkit})
    check(zip(*(table[name].tolist() for name in members), strict=True))
    begin, end = map(int, re.search(r"--instructions (\d+)-(\d+) ", command).groups())
    assert table["self_instructions"].sum() == end - begin
    return command


@needs_emulator
@pytest.mark.parametrize(
    ("more", "begin", "x"),
    [
        ([], "[0-9]+", 400),
        (["--instructions", "1000-60000"], "1000", 200),
        (["--instructions", "90000-"], "90000", 200),
        (["--time", "{}-{}"], "[0-9]+", 200),
    ],
)
def test_a_range_of_instructions_is_reproduced(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: list[str], begin: str, x: int
) -> None:
    """Also of a page that has a part of the run: its axis begins with the part."""
    shutil.copy(folder / "loops.ptk", tmp_path)
    page = tmp_path / "page.html"
    trace = ptkit.open(folder / "loops.ptk")
    more = [more[0], more[1].format(time_at(trace, 20), time_at(trace, 60))] if more else []
    assert main(["view", str(tmp_path / "loops.ptk"), "-o", str(page), "--no-open", *more]) == 0
    command = is_reproduced(page, [["drag", [x, 130], [800, 140], "Shift"]], monkeypatch)
    assert re.fullmatch(rf"ptkit functions loops.ptk --instructions {begin}-[0-9]+ --all", command)


@pytest.mark.filterwarnings("ignore::ptkit.PtkitWarning")  # files of the recording's machine are missing
@pytest.mark.parametrize(("track", "words"), [(0, "--tid 96 --stream 0"), (1, "--tid 99")])
def test_a_range_of_instructions_of_one_thread_is_reproduced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, track: int, words: str
) -> None:
    open_recording("all", tmp_path).save(tmp_path / "all.ptk")
    trace = ptkit.open(tmp_path / "all.ptk")
    (tmp_path / "all.perf.data").unlink()
    trace.view(of="instructions").save(tmp_path / "page.html")
    drag = ["drag", [210, 130], [260, 140], "Shift"]
    said = [SELECTION, ["value", CHOOSE.format(track)], SELECTION]
    *_, first, _, second = Browser(tmp_path / "page.html", DECODED, drag, *said).results
    assert "choose a track for the command" in first
    assert "choose a track for the command" not in second
    command = is_reproduced(tmp_path / "page.html", [drag, ["value", CHOOSE.format(track)]], monkeypatch)
    assert f" {words} --instructions " in command


@needs_emulator
def test_the_keyboard_alone_reaches_slices(folder: Path) -> None:
    """Tab to the timeline, arrows into calls, Enter selects; each slice is spoken."""
    focus = ["value", "document.activeElement.getAttribute('aria-roledescription')"]
    tabs = [one for _ in range(8) for one in (["press", "Tab"], focus)]
    _, *found = Browser(folder / "page.html", DECODED, *tabs).results
    assert "timeline" in found
    count = found.index("timeline") + 1
    reach = [["press", "Tab"]] * count
    steps = [["press", "ArrowDown"], ["press", "ArrowDown"], SPOKEN, ["press", "Enter"], SELECTION]
    _, spoken, said = Browser(folder / "page.html", DECODED, *reach, *steps).results
    names = set(functions_of(folder))
    (name,) = (one for one in (said.splitlines()[0],) if one in names)
    assert name in spoken


@needs_emulator
def test_the_keyboard_alone_goes_from_a_match_to_slow_calls(folder: Path) -> None:
    """Enter in the list of matches selects the first one, and the focus stays beside what it shows."""
    panel = ["until", "document.activeElement.getAttribute('role') === 'tabpanel'"]
    tab = ["value", "document.activeElement.innerText"]
    search = [["press", "/"], ["type", "leaf"], *[["press", "Tab"]] * 3, ["press", "Enter"], panel]
    actions = [
        DECODED,
        *search,
        DETAILS,
        SELECTION,
        *[["press", "Tab"]] * 5,
        tab,
        ["press", "Enter"],
        SELECTION,
    ]
    *_, said, focused, slow = Browser(folder / "page.html", *actions).results
    assert said.splitlines()[0] == "leaf"
    assert focused == "slow against fast"
    assert slow != said


@needs_emulator
@pytest.mark.parametrize(("width", "theme"), [(420, []), (1280, [["dark"]])], ids=["narrow", "dark"])
def test_the_page_fits_the_window(folder: Path, tmp_path: Path, width: int, theme: list[list[Any]]) -> None:
    picture = tmp_path / "page.png"
    fits = ["until", "document.documentElement.scrollWidth <= window.innerWidth"]
    colour = ["value", "getComputedStyle(document.body).backgroundColor"]
    actions = [["size", width, 700], *theme, fits, colour, ["picture", str(picture)]]
    *_, background = Browser(folder / "page.html", DECODED, *actions).results
    light = sum(numbers(background)[:3]) / 3
    assert light < 80 if theme else light > 200
    assert picture.stat().st_size > 5000


@pytest.mark.parametrize(
    "name",
    ["</script><script>alert(1)</script>", "<img src=x onerror=alert(1)>", "\"';alert(1)//", "\u202egnp.exe"],
)
def test_hostile_names_are_text(name: str, loop: Any, open_trace: Any, tmp_path: Path) -> None:
    encoded = name.encode()
    image = elf(loop.CODE, loop.BASE, "x" * len(encoded)).replace(b"x" * len(encoded), encoded)
    (tmp_path / "a<b>&").mkdir()
    (tmp_path / "a<b>&" / "program").write_bytes(image)
    trace = open_trace(loop.stream(20), images=[str(tmp_path / "a<b>&" / "program")])
    trace.view().save(tmp_path / "page.html")
    actions = [["click", "#functions-0"], SELECTION, ["value", "document.querySelectorAll('img').length"]]
    _, said, images = Browser(tmp_path / "page.html", DECODED, *actions).results
    assert images == 0
    shown = name.replace("\u202e", "\\u202e")
    assert shown in said or name in said or name.replace("\u202e", "\ufffd") in said
