"""The widget of a page in Chromium: what is selected, what Python asks for, and messages of others."""

from __future__ import annotations

import json
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
from compiling import build
from executed_parts import executed_part
from rounds import needs_emulator
from small_elf import elf
from view_browser import DECODED, Browser, needs_browser

import ptkit

pytest.importorskip("anywidget", reason="no anywidget: pip install ptkit[widget]")
pytestmark = needs_browser

ROUNDS = 3

# A stand-in for anywidget's model, and frames that are not the widget's.
HOST = """<!DOCTYPE html><meta charset="utf-8"><title>host</title>
<div id="cell"></div><div id="again"></div>
<script type="module">
const state = {state};
const bytes = (text) => new DataView(Uint8Array.from(atob(text), (one) => one.charCodeAt(0)).buffer);
state._page = bytes(state._page);
const listeners = [];
window.saved = [];
window.model = {{
  get: (name) => state[name],
  set: (name, value) => {{
    state[name] = value;
    for (const [event, listener] of [...listeners]) if (event === `change:${{name}}`) listener();
  }},
  on: (event, listener) => listeners.push([event, listener]),
  off: (event, listener) => listeners.splice(listeners.findIndex((one) => one[1] === listener), 1),
  save_changes: () => saved.push({{ selection: state.selection, performed: state._performed }}),
}};
const {{ default: widget }} = await import("data:text/javascript;base64,{module}");
window.show = (id) => widget.render({{ model, el: document.getElementById(id) }});
window.listening = () => listeners.length;
window.remove = show("cell");
</script>
"""
SHOWN = [["frame", "#cell iframe"], DECODED]
SELECTED = [["frame", ""], ["until", "model.get('selection')"]]
TITLE = ["value", "document.querySelector('section[aria-label=Selection] h2').innerText"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a recording of counted loops."""
    folder = tmp_path_factory.mktemp("widget")
    program = build("counted_loops", folder)
    ptkit.record([program, str(ROUNDS)], output=folder / "loops.ptk", backend="emulator", quiet=True)
    return folder


@pytest.fixture(scope="module")
def trace(folder: Path) -> ptkit.Trace:
    return ptkit.open(folder / "loops.ptk")


def host(widget: Any, path: Path) -> Path:
    """A page with the widget, as its state is sent to a notebook."""
    state = widget.get_state()
    module = b64encode(state.pop("_esm").encode()).decode()
    sent = {name: value for name, value in state.items() if not name.startswith(("_view", "_model", "lay"))}
    sent["_page"] = b64encode(sent["_page"]).decode()
    path.write_text(HOST.format(state=json.dumps(sent).replace("<", "\\u003c"), module=module))
    return path


def selected(widget: Any, sent: Any) -> dict[str, Any]:
    """The selection in Python, once a page has sent it."""
    widget.set_state({"selection": sent})
    found: dict[str, Any] = widget.selection
    return found


def calls_of(trace: ptkit.Trace, symbol: str) -> list[int]:
    """Numbers of the calls of a function."""
    found: list[int] = trace.calls(symbol=symbol)["id"].tolist()
    return found


def evaluated(line: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """What a Python line of the page gives."""
    monkeypatch.chdir(folder)
    return eval(line, {"ptkit": ptkit})


@needs_emulator
def test_the_keyboard_selects_a_call(
    trace: ptkit.Trace, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    widget = trace.view().widget()
    keys = [["focus", ".scroller"], *([["press", "ArrowDown"]] * 3), ["press", "Enter"], TITLE]
    *_, title, sent = Browser(host(widget, tmp_path / "host.html"), *SHOWN, *keys, *SELECTED).results
    found = selected(widget, sent)
    assert [found[name] for name in ("kind", "run", "calls", "by")] == ["slice", 0, 1, "instructions"]
    assert found["id"] in calls_of(trace, found["symbol"])
    assert title == found["function"]
    table = evaluated(found["python"], folder, monkeypatch)
    assert table["id"].tolist() == [found["id"]]
    assert table.named("entry_symbol") == [found["function"]]
    assert table.named("tid") == [found["tid"]]
    assert [found["end"] - found["begin"]] == table["instructions"].tolist()
    assert found["command"] == f"ptkit calls loops.ptk --id {found['id']}"


@needs_emulator
def test_the_mouse_selects_a_call_and_nothing(trace: ptkit.Trace, tmp_path: Path) -> None:
    widget = trace.view(of="time").widget()
    click = ["drag", [700, 150], [700, 150]]
    nothing = [["drag", [700, 90], [700, 90]], ["until", "model.get('selection') === null"]]
    actions = [*SHOWN, click, *SELECTED, *nothing]
    _, sent, _ = Browser(host(widget, tmp_path / "host.html"), *actions).results
    found = selected(widget, sent)
    assert (found["kind"], found["by"]) == ("slice", "time")
    assert found["id"] in calls_of(trace, found["symbol"])
    call = trace.calls().where(id=found["id"])
    assert [found["begin"], found["end"]] == [int(call[name][0]) for name in ("tsc", "end_tsc")]


@needs_emulator
def test_a_range_has_the_ticks_of_its_python_line(
    trace: ptkit.Trace, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    widget = trace.view(of="time").widget()
    actions = [*SHOWN, ["drag", [400, 130], [800, 140], "Shift"], *SELECTED]
    *_, sent = Browser(host(widget, tmp_path / "host.html"), *actions).results
    found = selected(widget, sent)
    assert (found["kind"], found["by"], found["id"]) == ("range", "time", None)
    assert trace.info.first_tsc <= found["begin"] < found["end"] <= trace.info.last_tsc
    assert f".between({found['begin']}, {found['end']})" in found["python"]
    assert f"--time {found['begin']}-{found['end']}" in found["command"]
    expected = trace.between(found["begin"], found["end"]).functions()
    table = evaluated(found["python"], folder, monkeypatch)
    assert table["count"].tolist() == expected["count"].tolist()
    assert len(table)


@needs_emulator
def test_a_range_has_the_instructions_of_its_python_line(
    trace: ptkit.Trace, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    widget = trace.view().widget()
    actions = [*SHOWN, ["drag", [400, 130], [800, 140], "Shift"], *SELECTED]
    *_, sent = Browser(host(widget, tmp_path / "host.html"), *actions).results
    found = selected(widget, sent)
    assert (found["kind"], found["by"], found["tid"]) == ("range", "instructions", None)
    assert 0 <= found["begin"] < found["end"] <= len(trace.instructions(columns=["ip"]))
    assert f" --instructions {found['begin']}-{found['end']} " in found["command"]
    table = evaluated(found["python"], folder, monkeypatch)
    assert table["self_instructions"].sum() == found["end"] - found["begin"]


@needs_emulator
def test_a_selected_function_has_its_row(
    trace: ptkit.Trace, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    widget = trace.view().widget()
    chosen = [
        ["focus", "input[aria-label='Filter functions']"],
        ["type", "odd"],
        ["click", "#functions-0"],
    ]
    *_, sent = Browser(host(widget, tmp_path / "host.html"), *SHOWN, *chosen, *SELECTED).results
    found = selected(widget, sent)
    shown = [found[name] for name in ("kind", "function", "symbol", "id", "begin")]
    assert shown == ["function", "odd", "odd", None, None]
    table = evaluated(found["python"], folder, monkeypatch)
    assert table["count"].tolist() == [len(calls_of(trace, "odd"))] == [34 * ROUNDS]


@needs_emulator
def test_find_and_select_move_the_selection_of_the_page(trace: ptkit.Trace, tmp_path: Path) -> None:
    """Of a request before the page is shown, and of later ones."""
    widget = trace.view().widget()
    widget.find("leaf")
    page = host(widget, tmp_path / "host.html")
    widget.find("ORK")  # a part of "work", and of other names
    part = json.dumps(widget.get_state()["_requests"])
    leaf, odd = calls_of(trace, "leaf"), calls_of(trace, "odd")
    widget.select(odd[-1])
    chosen = json.dumps(widget.get_state()["_requests"][-1:])
    actions = [
        *[*SELECTED, ["frame", "#cell iframe"], TITLE, ["frame", ""]],
        ["value", f"model.set('_requests', {part})"],
        ["until", f"model.get('selection').id !== {leaf[0]} && model.get('selection')"],
        ["value", f"model.set('_requests', {chosen})"],
        ["until", f"model.get('selection').id === {odd[-1]} && model.get('selection')"],
        *[
            ["frame", "#cell iframe"],
            TITLE,
            ["frame", ""],
            ["value", "saved.map((one) => one.performed)"],
        ],
    ]
    first, title, _, second, _, third, last, performed = Browser(page, *actions).results
    assert (first["id"], first["function"], title) == (leaf[0], "leaf", "leaf")
    assert "ork" in second["function"].lower()
    assert (third["id"], third["function"], last) == (odd[-1], "odd", "odd")
    assert performed[-1] == 3


@needs_emulator
def test_a_call_of_the_second_run_is_selected(trace: ptkit.Trace, folder: Path, tmp_path: Path) -> None:
    widget = trace.view(executed_part(ptkit.open(folder / "loops.ptk"), 0, 90)).widget()
    widget.select(calls_of(trace, "leaf")[2], run=1)
    (sent,) = Browser(host(widget, tmp_path / "host.html"), *SELECTED).results
    assert (sent["run"], sent["id"], sent["function"]) == (1, calls_of(trace, "leaf")[2], "leaf")
    assert "time=" in sent["python"]


@needs_emulator
def test_zoom_shows_the_interval(trace: ptkit.Trace, tmp_path: Path) -> None:
    """What is clicked lies in it."""
    widget = trace.view(of="time").widget()
    call = trace.calls(symbol="work")[1:2]
    first, last = int(call["tsc"][0]), int(call["end_tsc"][0])
    widget.zoom(first, last)
    performed = [["frame", ""], ["until", "model.get('_performed') === 1"]]
    clicks = [["drag", [x, 150], [x, 150]] for x in (400, 700, 1000)]
    actions = [*SHOWN, *performed, *[one for click in clicks for one in (click, *SELECTED)]]
    _, _, *found = Browser(host(widget, tmp_path / "host.html"), *actions).results
    assert {one["id"] for one in found} == {found[0]["id"]}
    begin, end = int(found[0]["begin"]), int(found[0]["end"])
    assert begin <= first < last <= end


@needs_emulator
@pytest.mark.parametrize(
    ("kind", "actions"),
    [
        ("slice", [["drag", [700, 150], [700, 150]]]),
        ("function", [["click", "#functions-0"]]),
        ("range", [["drag", [400, 130], [800, 140], "Shift"]]),
    ],
)
def test_a_page_that_is_shown_again_has_the_selection_and_repeats_no_request(
    kind: str, actions: list[list[Any]], trace: ptkit.Trace, tmp_path: Path
) -> None:
    widget = trace.view(of="time").widget()
    widget.find("leaf")
    chosen = f"model.get('selection').function !== 'leaf' && model.get('selection').kind === '{kind}'"
    steps = [
        *[*SELECTED, *SHOWN, *actions, ["frame", ""], ["until", chosen], *SELECTED],
        *[["frame", "#cell iframe"], TITLE, ["frame", ""]],
        ["value", "(remove(), document.querySelectorAll('iframe').length + listening())"],
        ["value", "(saved.length = 0, void show('again'))"],
        *[["frame", "#again iframe"], ["until", TITLE[1].replace("h2')", "h2')?")], ["frame", ""]],
        *[["until", "saved.length"], ["value", "saved.map((one) => one.selection)"]],
    ]
    *_, before, title, left, _, again, _, saved = Browser(
        host(widget, tmp_path / "host.html"), *steps
    ).results
    assert left == 0
    assert before["kind"] == kind
    assert saved == [before]
    assert again == title


@needs_emulator
def test_messages_of_others_are_ignored(trace: ptkit.Trace, tmp_path: Path) -> None:
    widget = trace.view().widget()
    selection = "{ptkit: 1, type: 'selection', selection: {kind: 'function', function: 'no'}}"
    find = "{ptkit: 1, type: 'find', text: 'leaf'}"
    # Another frame: to the notebook, and to the page.
    script = f"parent.postMessage({selection}, '*'); parent.frames[0].postMessage({find}, '*')"
    other = f"Object.assign(document.createElement('iframe'), {{srcdoc: `<script>{script}</script>`}})"
    odd = [
        *["null", "1", "'find'", "[]", "{}", "{ptkit: 2, type: 'find', text: 'leaf'}", "{ptkit: 1}"],
        *["{ptkit: 1, type: 'eval', text: 'document.title = 1'}", "{ptkit: 1, type: 'find', text: {}}"],
        "{ptkit: 1, type: 'find', text: 'l'.repeat(20000)}",
        "{ptkit: 1, type: 'select', selection: {kind: 'slice', run: 9, id: 1}}",
        "{ptkit: 1, type: 'select', selection: {kind: 'slice', run: '__proto__', id: 1}}",
        "{ptkit: 1, type: 'select', selection: {kind: 'range', run: 0, begin: '9', end: '1'}}",
        "{ptkit: 1, type: 'zoom', run: 0, begin: 'x', end: 1e999}",
    ]
    page = "document.querySelector('#cell iframe').contentWindow"
    actions = [
        *[*SHOWN, ["frame", ""]],
        ["value", f"postMessage({selection}, '*')"],
        *[["value", f"{page}.postMessage({one}, '*')"] for one in odd],
        ["value", f"void document.body.append({other})"],
        ["value", "new Promise((done) => setTimeout(() => done(1), 500))"],
        ["value", "saved"],
        # What it is asked for is there to be seen that it listens.
        ["value", f"{page}.postMessage({find}, '*')"],
        *SELECTED,
    ]
    *_, saved, _, sent = Browser(host(widget, tmp_path / "host.html"), *actions).results
    assert saved == []
    assert sent["function"] == "leaf"


@needs_emulator
def test_a_page_of_a_file_says_nothing_to_a_frame_around_it(trace: ptkit.Trace, tmp_path: Path) -> None:
    trace.view().save(tmp_path / "page.html")
    around = tmp_path / "around.html"
    around.write_text(
        "<!DOCTYPE html><meta charset=utf-8><script>window.heard = [];"
        "addEventListener('message', (event) => heard.push(event.data))</script>"
        "<iframe src=page.html style='width:1200px;height:700px'></iframe>"
    )
    find = "frames[0].postMessage({ptkit: 1, type: 'find', text: 'leaf'}, '*')"
    actions = [
        *[["frame", "iframe"], DECODED, ["click", "#functions-0"], TITLE, ["frame", ""]],
        *[["value", find], ["value", "new Promise((done) => setTimeout(() => done(1), 300))"]],
        *[["value", "heard"], ["frame", "iframe"], TITLE],
    ]
    _, before, *_, heard, after = Browser(around, *actions, files=["page.html"]).results
    assert heard == []
    assert before == after != "leaf"


@pytest.mark.parametrize(
    "name", ["</script><script>parent.x = 1</script>", "<img src=x onerror=alert(1)>", "\"';alert(1)//"]
)
def test_hostile_names_are_text(name: str, loop: Any, open_trace: Any, tmp_path: Path) -> None:
    encoded = name.encode()
    image = elf(loop.CODE, loop.BASE, "x" * len(encoded)).replace(b"x" * len(encoded), encoded)
    (tmp_path / "program").write_bytes(image)
    (tmp_path / "<img src=x>.pt").write_bytes(loop.stream(20))
    images = [str(tmp_path / "program")]
    trace = ptkit.open(tmp_path / "<img src=x>.pt", images=images, cpu="6/142/9")
    widget = trace.view().widget()
    widget.find(name)
    *_, sent, tags, title = Browser(
        host(widget, tmp_path / "host.html"),
        *SELECTED,
        ["value", "document.querySelectorAll('img, script').length"],
        ["value", "document.querySelector('iframe').title"],
    ).results
    found = selected(widget, sent)
    assert found["function"] == name
    assert tags == 1
    assert title == "<img src=x>.pt"
