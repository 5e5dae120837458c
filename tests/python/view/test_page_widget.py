"""The widget of a page: its traits and requests, and a notebook that is executed."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest
from compiling import build
from rounds import needs_emulator
from small_elf import elf

import ptkit

pytest.importorskip("anywidget", reason="no anywidget: pip install ptkit[widget]")

NOTHING = dict.fromkeys(
    ["kind", "run", "function", "symbol", "id", "calls", "tid", "by", "begin", "end", "command", "python"]
)
LARGE = 2**64 - 1


@pytest.fixture
def widget(loop: Any, open_trace: Any, tmp_path: Path) -> Any:
    """The widget of one function that calls nothing."""
    (tmp_path / "program").write_bytes(elf(loop.CODE, loop.BASE, "again"))
    return open_trace(loop.stream(20), images=[str(tmp_path / "program")]).view().widget()


def selected(widget: Any, sent: Any) -> dict[str, Any]:
    """The selection in Python, once a page has sent it."""
    widget.set_state({"selection": sent})
    found: dict[str, Any] = widget.selection
    return found


def test_pages_import_no_anywidget() -> None:
    program = "import ptkit, ptkit.view.page, sys; sys.exit('anywidget' in sys.modules)"
    paths = [str(Path(ptkit.__file__).parents[1]), *sys.path]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    subprocess.run([sys.executable, "-c", program], env=environment, check=True)


def test_without_anywidget(
    loop: Any, open_trace: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "program").write_bytes(elf(loop.CODE, loop.BASE, "again"))
    page = open_trace(loop.stream(20), images=[str(tmp_path / "program")]).view()
    monkeypatch.setitem(sys.modules, "anywidget", None)
    with pytest.raises(ptkit.UnsupportedError, match=r"not installed: pip install ptkit\[widget\]"):
        page.widget()


def test_the_widget_has_the_page(widget: Any, loop: Any, open_trace: Any, tmp_path: Path) -> None:
    page = open_trace(loop.stream(20), images=[str(tmp_path / "program")]).view()
    state = widget.get_state()
    assert len(state["_page"]) == page.bytes
    assert state["_page"].startswith(b"<!DOCTYPE html>")
    assert (state["title"], state["height"]) == (page._document.runs[0].title(), 640)
    assert page.widget(height=300).height == 300
    with pytest.raises(ptkit.ConfigError, match="height=0"):
        page.widget(height=0)
    assert "application/vnd.jupyter.widget-view+json" in widget._repr_mimebundle_()[0]
    assert f"{page.bytes:,} bytes" in repr(widget)


def test_a_selection_is_checked_and_observed(widget: Any) -> None:
    seen: list[Any] = []
    widget.observe(lambda change: seen.append(change["new"]), "selection")
    assert widget.selection == NOTHING
    assert widget.get_state()["selection"] is None
    sent = {**NOTHING, "kind": "range", "run": 0, "by": "time", "begin": "12", "end": str(LARGE)}
    assert selected(widget, sent) == {**sent, "begin": 12, "end": LARGE}
    assert widget.get_state()["selection"] == sent
    bad = {
        "kind": "slice",
        "id": "1",
        "run": True,
        "begin": "-1",
        "end": "9" * 21,
        "function": ["x"],
        "more": 1,
    }
    assert selected(widget, bad) == {**NOTHING, "kind": "slice"}
    assert selected(widget, {"kind": "else", "id": 1}) == NOTHING
    assert [one["kind"] for one in seen] == ["range", "slice", None]
    with pytest.raises(Exception, match="read-only"):
        widget.selection = sent


def test_requests_are_checked_and_the_last_of_each_kind_is_kept(widget: Any) -> None:
    widget.find("AGAI")
    widget.zoom(1, LARGE)
    widget.select(0)
    widget.find("again")
    kept = widget.get_state()["_requests"]
    assert [(one["number"], one["request"]["type"]) for one in kept] == [
        (2, "zoom"),
        (3, "select"),
        (4, "find"),
    ]
    assert kept[0]["request"] == {"type": "zoom", "run": 0, "begin": "1", "end": str(LARGE)}
    with pytest.raises(ptkit.SymbolError, match="'other'"):
        widget.find("other")
    with pytest.raises(ptkit.ConfigError, match="no slice of this call"):
        widget.select(1000)
    for wrong in ({"begin": 5, "end": 5}, {"begin": -1, "end": 5}, {"begin": 1, "end": 2, "run": 1}):
        with pytest.raises(ptkit.ConfigError):
            widget.zoom(**wrong)
    assert widget.get_state()["_requests"] == kept


@pytest.mark.slow
@needs_emulator
def test_a_notebook_shows_the_widget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("nbformat", "nbclient", "ipykernel"):
        pytest.importorskip(name, reason=f"no {name}: pip install ptkit[notebook]")
    from nbclient import NotebookClient
    from nbformat import v4

    program = build("counted_loops", tmp_path)
    ptkit.record([program, "1"], output=tmp_path / "loops.ptk", backend="emulator", quiet=True)
    paths = [str(Path(ptkit.__file__).parents[1].resolve()), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    cells = [
        "import ptkit\npage = ptkit.open('loops.ptk').view()",
        "w = page.widget(height=400)\nw",
        "w.find('leaf')\nprint(w.selection['kind'])",
    ]
    notebook = v4.new_notebook(cells=[v4.new_code_cell(source) for source in cells])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Jupyter's own
        NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    (shown,) = notebook.cells[1].outputs
    view = shown["data"]["application/vnd.jupyter.widget-view+json"]
    (printed,) = notebook.cells[2].outputs
    assert printed["text"] == "None\n"
    kept = notebook.metadata["widgets"]["application/vnd.jupyter.widget-state+json"]["state"]
    model = kept[view["model_id"]]
    assert (model["model_module"], model["state"]["height"]) == ("anywidget", 400)
    assert model["state"]["_requests"] == [{"number": 1, "request": {"type": "find", "text": "leaf"}}]
    (page,) = (one for one in model["buffers"] if one["path"] == ["_page"])
    assert b64decode(page["data"])[:15] == b"<!DOCTYPE html>"
