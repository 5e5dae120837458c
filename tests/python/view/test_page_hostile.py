"""Names, paths, commands and source of recordings that are hostile: nothing of them is markup."""

from __future__ import annotations

import json
import xml.dom.minidom
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from compiling import compiled
from rounds import needs_emulator
from small_elf import elf
from view_pages import PageData

import ptkit
from ptkit.view.document import shell
from ptkit.view.picture import svg_picture
from ptkit.view.text import data_element, json_text

HOSTILE = (
    "</script><script>alert(1)</script>",
    "<!--<script>",
    "-->",
    "\"'`&lt;&amp;",
    "a\x00b\x1b[31m",
    "\udc80\ud800",
    "\u202egnp.exe\u2066",
    "\u2028\u2029",
    "<!--PTKIT-DATA-->",
    "x${7*7}{{7*7}}",
)


@pytest.fixture(params=[text for text in HOSTILE if "\x00" not in text])
def trace(request: pytest.FixtureRequest, loop: Any, open_trace: Any, tmp_path: Path) -> ptkit.Trace:
    """A recording of a program in which the path and the only function have a hostile name."""
    name = request.param.encode("utf-8", "surrogatepass")
    folder = tmp_path / "a<"
    folder.mkdir()
    program = folder / "script><!--&'\" b"
    image = elf(loop.CODE, loop.BASE, "x" * len(name)).replace(b"x" * len(name) + b"\0", name + b"\0")
    program.write_bytes(image)
    return open_trace(loop.stream(20), images=[str(program)])


@pytest.mark.parametrize("text", HOSTILE)
def test_json_has_no_markup(text: str) -> None:
    written = json_text({text: [text]})
    assert written.isascii()
    assert not set("<>&") & set(written)
    assert json.loads(written) == {text: [text]}


def test_elements_have_base64_alone() -> None:
    assert data_element("r0-slices-0", b"AA==") == (
        b'<script type="application/octet-stream" class="chunk" id="r0-slices-0">AA==</script>\n'
    )


def test_hostile_names_stay_text(trace: ptkit.Trace) -> None:
    page = PageData(trace.view())
    assert page.more_scripts == 0
    assert page.more_tags == set()
    assert b"<!--PTKIT-DATA-->" not in page.text
    ends = b"".join(shell()).count(b"</script>") + len(page.elements)
    assert page.text.count(b"</script>") == ends
    assert page.text.count(b"<!--") == b"".join(shell()).count(b"<!--")
    assert len(page.runs[0]["functions"]["name"]) == 1
    assert "[unknown]" not in page.runs[0]["functions"]["name"]
    for text in _texts(page.head):
        assert not any(0xD800 <= ord(sign) < 0xE000 or ord(sign) < 0x20 for sign in text), ascii(text)


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for key, one in value.items() for text in (key, *_texts(one))]
    return [text for one in value for text in _texts(one)] if isinstance(value, list) else []


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.frames: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.frames += [value or "" for name, value in attrs if name == "srcdoc"]


def test_a_notebook_has_one_frame_and_a_picture(trace: ptkit.Trace) -> None:
    page = trace.view()
    found = _Tags()
    found.feed(page._repr_html_())
    assert found.tags == ["div", "img", "iframe"]
    assert found.frames == [b"".join(page._document.parts).decode()]
    picture = svg_picture(page._document.runs[0])
    tags = {node.tagName for node in xml.dom.minidom.parseString(picture).getElementsByTagName("*")}
    assert tags <= {"svg", "rect", "title", "text"}


def test_facts_of_a_notebook_are_escaped(trace: ptkit.Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    from ptkit.info import model

    monkeypatch.setattr(model, "lines_of", lambda info, **_: [("command", text) for text in HOSTILE])
    for shown in (trace, trace.touching(0x401000)):
        text = shown._repr_html_()
        found = _Tags()
        found.feed(text)
        assert set(found.tags) <= {"p", "table", "tr", "th", "td"}
        text.encode()  # without lone surrogates


def test_facts_of_a_notebook_decode_nothing(trace: ptkit.Trace) -> None:
    before = trace.opened.session.decoded_bytes
    assert "<table" in trace._repr_html_()
    assert trace.opened.session.decoded_bytes == before


@needs_emulator
def test_hostile_paths_commands_and_source(tmp_path: Path) -> None:
    folder = tmp_path / "<" / "script><!-- '\"&" / "<"
    folder.mkdir(parents=True)
    source = folder / "script>.c"
    source.write_text('int main(void) { return 0; } /* </script><script>alert("1")</script> \u2028 */\n')
    program = compiled(folder / "<b>program", "-g", source)
    hostile = [text for text in HOSTILE if "\x00" not in text and "\ud800" not in text]
    trace = ptkit.record([program, *hostile], output=folder / "<i>.ptk", backend="emulator", quiet=True)
    page = PageData(trace.view())
    assert page.more_scripts == 0
    assert page.more_tags == set()
    run = page.runs[0]
    assert run["title"] == "<i>.ptk"
    assert "</script><script>alert(1)</script>" in run["command"]
    (main,) = (
        one for one in page.details().values() if one["source"] and "main" in one["source"]["lines"][0]
    )
    assert "alert" in main["source"]["lines"][0]


@needs_emulator
def test_redacted_pages_have_neither_paths_nor_commands_nor_code(tmp_path: Path) -> None:
    folder = tmp_path / "private-folder"
    folder.mkdir()
    source = folder / "secret-source.c"
    source.write_text("int main(void) { return 0; } /* secret-comment */\n")
    program = compiled(folder / "secret-program", "-g", source)
    trace = ptkit.record(
        [program, "secret-word"], output=folder / "secret.ptk", backend="emulator", quiet=True
    )
    plain, page = trace.view(), trace.view(redact=True)
    shown, hidden = PageData(plain), PageData(page)
    assert "secret-word" in json.dumps(shown.head)
    texts = json.dumps([hidden.head, hidden.details()])
    for word in ("secret", "private-folder", str(tmp_path)):
        assert word not in texts
    assert hidden.runs[0]["command"] is None
    assert all(one["code"] is None and one["source"] is None for one in hidden.details().values())
    assert any("disassembly" in note and "--redact" in note for note in plain.notes)
    assert any(note.startswith("redacted: ") for note in page.notes)
    assert hidden.columns()["id"].tolist() == shown.columns()["id"].tolist()
