"""Docstrings: every public name has one, and examples run."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil

import pytest

ptkit = pytest.importorskip("ptkit", reason="the extension module is not built")

MODULES = [
    info.name
    for info in pkgutil.walk_packages(ptkit.__path__, "ptkit.")
    if not info.name.endswith(("._core", ".__main__"))
]


@pytest.mark.parametrize("name", ["ptkit", *MODULES])
def test_examples_run(name: str) -> None:
    module = importlib.import_module(name)
    failed, _ = doctest.testmod(module, optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    assert failed == 0


def test_public_methods_are_documented() -> None:
    for kind in (ptkit.Trace, ptkit.Table, ptkit.TraceInfo, ptkit.StreamInfo):
        for name, member in vars(kind).items():
            if not name.startswith("_") and (inspect.isfunction(member) or isinstance(member, property)):
                assert inspect.getdoc(member), f"{kind.__name__}.{name}"


def test_every_query_argument_is_documented() -> None:
    text = ptkit.decode.Query.__doc__
    for name in ptkit.decode.Query.__annotations__:
        assert f"    {name} :" in text or f", {name} :" in text or f" {name}, " in text, name
