"""Docstrings: every public name has one, and examples run."""

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

ptkit = pytest.importorskip("ptkit", reason="the extension module is not built")
capture = pytest.importorskip("ptkit.capture")

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
        for name, member in vars(kind).items():
            if not name.startswith("_") and (inspect.isfunction(member) or isinstance(member, property)):
                assert inspect.getdoc(member), f"{kind.__name__}.{name}"


def test_every_query_argument_is_documented() -> None:
    text = ptkit.decode.Query.__doc__
    for name in ptkit.decode.Query.__annotations__:
        assert f"    {name} :" in text or f", {name} :" in text or f" {name}, " in text, name


def test_every_recording_option_is_documented() -> None:
    for name in capture.Options.__annotations__:
        assert f"    {name} :" in (capture.Options.__doc__ or ""), name


@pytest.mark.parametrize("table", list(ptkit.schema.tables()))
def test_tables_document_their_columns(table: str) -> None:
    member = inspect.getattr_static(ptkit.Trace, table)
    text = inspect.getdoc(member)
    assert text is not None
    sections = (
        ["Returns", "Notes"] if isinstance(member, property) else ["Parameters", "Returns", "Raises", "Notes"]
    )
    for section in sections:
        assert f"\n{section}\n---" in text, section
    for column in ptkit.schema.schema_of(table).columns.values():
        if column.role in ("stored", "on demand"):
            assert f"``{column.name}``" in text, column.name
            # The first dtype behind the name is the column's.
            behind = text.split(f"``{column.name}``", 1)[1]
            assert re.findall(r"u?int\d+", behind)[0] == str(column.dtype), column.name
        if column.unit in ptkit.schema.ENUMS:
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
