"""The stubs of the core equal the module: the generated enumerations; names and parameters by hand."""

from __future__ import annotations

import ast
import enum
import re
import subprocess
import sys
from pathlib import Path

import pytest

_core = pytest.importorskip("ptkit._core", reason="the extension module is not built")
ROOT = Path(__file__).resolve().parents[2]
STUB = ROOT / "python" / "ptkit" / "_core.pyi"


def _public(names: object) -> set[str]:
    return {name for name in names if not name.startswith("_")}  # type: ignore[attr-defined]


def _tree() -> dict[str, ast.ClassDef | ast.FunctionDef]:
    body = ast.parse(STUB.read_text()).body
    return {node.name: node for node in body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}


def _constants() -> set[str]:
    body = ast.parse(STUB.read_text()).body
    return {
        one.target.id for one in body if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)
    }


def _parameters(function: ast.FunctionDef) -> list[str]:
    arguments = function.args
    return [argument.arg for argument in [*arguments.args, *arguments.kwonlyargs]]


def _documented(function: object) -> list[str]:
    """Parameters as pybind11 writes them into the docstring's signature."""
    text = (function.__doc__ or "").splitlines()[0]
    inside = text[text.index("(") + 1 : text.rindex(") ->")]
    return re.findall(r"(?:^|, )(\w+):", inside)


def test_names() -> None:
    enumerations = {name for name, one in vars(_core).items() if isinstance(one, enum.EnumMeta)}
    assert set(_tree()) | _constants() == _public(dir(_core)) - enumerations


def test_enumerations_are_up_to_date() -> None:
    tool = ROOT / "tools" / "make_stub.py"
    done = subprocess.run([sys.executable, tool, "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_classes() -> None:
    for name, node in _tree().items():
        kind = getattr(_core, name)
        if not isinstance(node, ast.ClassDef):
            continue
        functions = {line.name: line for line in node.body if isinstance(line, ast.FunctionDef)}
        fields = {
            line.target.id
            for line in node.body
            if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name)
        }
        assert _public(functions) | fields == _public(vars(kind)), name
        for method, written in functions.items():
            if any(isinstance(d, ast.Name) and d.id == "property" for d in written.decorator_list):
                continue
            assert _parameters(written) == _documented(getattr(kind, method)), f"{name}.{method}"


def test_functions() -> None:
    for name, node in _tree().items():
        if isinstance(node, ast.FunctionDef):
            assert _parameters(node) == _documented(getattr(_core, name)), name


def test_public_names_exist() -> None:
    import ptkit

    assert sorted(set(ptkit.__all__)) == sorted(ptkit.__all__)
    for name in ptkit.__all__:
        assert hasattr(ptkit, name)
        assert name == "__version__" or getattr(ptkit, name).__doc__, name
