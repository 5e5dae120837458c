"""Docstrings: every public name has one, and examples run. Pages: their form, and their links."""

from __future__ import annotations

import dataclasses
import doctest
import importlib
import inspect
import pkgutil
import re
import tempfile
from pathlib import Path

import pytest
from doc_blocks import FENCE, ROOT, blocks_of, indented_of

ptkit = pytest.importorskip("ptkit", reason="the extension module is not built")
capture = pytest.importorskip("ptkit.capture")
schema = pytest.importorskip("ptkit.support.schema")

MODULES = [
    info.name
    for info in pkgutil.walk_packages(ptkit.__path__, "ptkit.")
    if not info.name.endswith(("._core", ".__main__", ".libptkit_qemu"))
]


@pytest.mark.parametrize("name", ["ptkit", *MODULES])
def test_examples_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # where some of them leave a bundle
    module = importlib.import_module(name)
    failed, _ = doctest.testmod(module, optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    assert failed == 0


def test_public_methods_are_documented() -> None:
    for kind in (ptkit.Trace, ptkit.Table, ptkit.TraceInfo, ptkit.StreamInfo, ptkit.Recorder, ptkit.Filter):
        for name in dir(kind):
            member = inspect.getattr_static(kind, name)
            if not name.startswith("_") and (inspect.isfunction(member) or isinstance(member, property)):
                assert inspect.getdoc(member), f"{kind.__name__}.{name}"


def test_every_query_argument_is_documented() -> None:
    text = ptkit.decode.Query.__doc__
    for name in ptkit.decode.Query.__annotations__:
        assert f"    {name} :" in text or f", {name} :" in text or f" {name}, " in text, name


def test_every_recording_option_is_documented() -> None:
    for name in capture.Options.__annotations__:
        assert f"    {name} :" in (capture.Options.__doc__ or ""), name


@pytest.mark.parametrize("table", list(schema.tables()))
def test_tables_document_their_columns(table: str) -> None:
    member = inspect.getattr_static(ptkit.Trace, table)
    text = inspect.getdoc(member)
    assert text is not None
    takes_query = table in schema.row_tables() and not isinstance(member, property)
    sections = ["Parameters", "Returns", "Raises", "Notes"] if takes_query else ["Returns", "Notes"]
    for section in sections:
        assert f"\n{section}\n---" in text, section
    for column in schema.schema_of(table).columns.values():
        if column.role in ("stored", "on demand"):
            assert f"``{column.name}``" in text, column.name
            # The first dtype behind the name is the column's.
            behind = text.split(f"``{column.name}``", 1)[1]
            assert re.findall(r"u?int\d+", behind)[0] == str(column.dtype), column.name
        if column.unit in schema.ENUMS:
            assert f"`ptkit.{column.unit}`" in text, column.name


@pytest.mark.parametrize("name", [name for name in dir(ptkit.Trace) if name.startswith("iter_")])
def test_iterators_document_their_arguments(name: str) -> None:
    method = getattr(ptkit.Trace, name)
    text = inspect.getdoc(method)
    assert text is not None
    for section in ("Parameters", "Yields", "Raises"):
        assert f"\n{section}\n---" in text, section
    for argument in list(inspect.signature(method).parameters)[1:]:
        assert f"\n{argument} :" in text or f"\n**{argument}" in text, argument


DATA = [ptkit.TraceInfo, ptkit.StreamInfo, ptkit.Filter, ptkit.Trigger]
DATA += [capture.Recording, capture.Backend, capture.Progress]


@pytest.mark.parametrize("kind", DATA)
def test_fields_are_documented(kind: type) -> None:
    text = kind.__doc__ or ""
    for field in dataclasses.fields(kind):
        assert re.search(rf"^    (\w+, )*{field.name}(, \w+)* : ", text, re.MULTILINE), field.name


TEXTS = sorted(path for path in ROOT.glob("*.md")) + sorted((ROOT / "docs").glob("*.md"))
DOCS = [path for path in TEXTS if path.parent.name == "docs"]
WIDTH = 100
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def _anchors(path: Path) -> set[str]:
    """Anchors of headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", path.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def _links(path: Path) -> list[str]:
    return [link for link in LINK.findall(FENCE.sub("", path.read_text())) if "://" not in link]


@pytest.mark.parametrize("page", TEXTS, ids=_name)
def test_lines_are_short(page: Path) -> None:
    wide = [
        f"{_name(page)}:{number}: {line}"
        for number, line in enumerate(page.read_text().splitlines(), 1)
        if len(line) > WIDTH and not line.startswith("|") and not re.search(r"https?://\S{60}", line)
    ]
    assert wide == []


@pytest.mark.parametrize("page", DOCS, ids=_name)
def test_pages_begin_with_what_they_are_for(page: Path) -> None:
    title, blank, first = page.read_text().split("\n", 2)
    assert re.fullmatch(r"# \S.*", title)
    assert blank == ""
    paragraph = " ".join(first.split("\n\n", 1)[0].split())
    assert re.match(r"This page (is|says|lists|has|maps|describes) ", paragraph), paragraph
    assert paragraph.endswith((".", ":")), paragraph


@pytest.mark.parametrize("page", TEXTS, ids=_name)
def test_code_is_fenced(page: Path) -> None:
    assert indented_of(page) == []
    assert page.read_text().count("\n```") == 2 * len(blocks_of(page))


@pytest.mark.parametrize("page", DOCS, ids=_name)
def test_pages_are_linked(page: Path) -> None:
    others = [other for other in TEXTS if other != page]
    targets = {(other.parent / link.split("#")[0]).resolve() for other in others for link in _links(other)}
    assert page in targets


@pytest.mark.parametrize("page", TEXTS, ids=_name)
def test_links_resolve(page: Path) -> None:
    for link in _links(page):
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.exists(), link
        assert not anchor or anchor in _anchors(target), link


def test_pages_that_are_named_are_there() -> None:
    sources = [*TEXTS, *ROOT.glob("notebooks/*.ipynb"), *ROOT.glob("tools/*.py"), *ROOT.glob("tests/**/*.py")]
    sources += [path for path in (ROOT / "src").rglob("*") if path.suffix in {".h", ".cpp", ".def"}]
    sources += [*(ROOT / "python").rglob("*.py"), *(ROOT / "kernel").rglob("*.[ch]")]
    missing = {
        f"{_name(path)}: {name}"
        for path in sources
        for name in re.findall(r"\bdocs/[\w-]+\.md\b", path.read_text(encoding="utf-8"))
        if not (ROOT / name).is_file()
    }
    assert missing - {"tests/codebase/test_tidy_files.py: docs/time.md"} == set()


def test_files_that_are_named_are_there() -> None:
    folders = "src|python|kernel|tests|tools|benchmarks|notebooks|cmake"
    named = [
        (page, name)
        for page in TEXTS
        for name in re.findall(rf"`((?:{folders})/[\w./*-]*)`", page.read_text())
    ]
    assert len(named) > 100
    missing = {
        f"{_name(page)}: {name}"
        for page, name in named
        if not any(ROOT.glob(name.rstrip("/"))) and not any(ROOT.glob(f"{name}.*"))
    }
    assert missing == set()


def test_benchmarks_that_are_named_are_there() -> None:
    runner = (ROOT / "benchmarks" / "run.py").read_text()
    questions = (ROOT / "benchmarks" / "harness" / "questions.py").read_text()
    named = [
        (page, name, question)
        for page in TEXTS
        for name, question in re.findall(
            r"benchmarks/run\.py\s+(\w+)(?:\s+--question\s+(\w+))?", page.read_text()
        )
    ]
    assert len(named) > 5
    for page, name, question in named:
        assert f'"{name}"' in runner, (page, name)
        assert not question or f'"{question}"' in questions, (page, question)
