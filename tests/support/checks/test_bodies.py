"""Finds test bodies that check nothing: neither themselves nor by a function of the tests that they call.

A body checks if it has an assertion (Python: `assert`, `pytest.raises`, `numpy.testing`; C++: GoogleTest's
EXPECT_, ASSERT_, FAIL) or calls a function that checks. A called name means a function of the same file, or
of a module or header of the tests that the file imports or includes; scopes and overloads are one.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_PYTHON_CHECKS = {"raises", "warns", "fail", "deprecated_call"}  # of pytest
_CPP_CHECK = re.compile(r"\b(?:EXPECT|ASSERT)_[A-Z_]+|\b(?:FAIL|ADD_FAILURE|ADD_FAILURE_AT|GTEST_FAIL)\b")
_CPP_TEST = re.compile(r"^(?:TYPED_)?TEST(?:_[FP])?\(\s*(\w+),\s*(\w+)\s*\)\s*{", re.MULTILINE)
# A definition at any depth: a name, parameters, maybe qualifiers or an initializer list, and a brace.
_CPP_FUNCTION = re.compile(
    r"\b(~?\w+)\s*\((?:[^;{}]|{})*\)\s*(?:const|noexcept|override|->\s*[\w:<>,&*\s]+|:\s*[^;{}]*)*\s*{"
)
_CPP_LAMBDA = re.compile(r"\bauto&?\s+(\w+)\s*=\s*\[[^\]]*\][^{;]*{")
_CPP_CALL = re.compile(r"\b(\w+)\s*(?:<[^<>;(){}]*>)?\s*[({]")
_CPP_INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)
_CPP_NO_FUNCTION = {"if", "for", "while", "switch", "catch", "return", "sizeof"}
_CPP_NOISE = re.compile(
    r'R"(\w*)\(.*?\)\1"|//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', re.DOTALL
)


@dataclass(frozen=True)
class Body:
    """A function: its name, whether it is a test and has an assertion, and the names that it calls."""

    name: str
    is_test: bool
    checks: bool
    calls: frozenset[str]


@dataclass(frozen=True)
class File:
    """The functions of a file, and the files that its other names come from."""

    bodies: Sequence[Body]
    sources: Sequence[str]


def _called_name(call: ast.Call) -> str:
    function = call.func
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _names_used(function: ast.FunctionDef) -> frozenset[str]:
    """Names that a function calls, hands on, or asks for as a fixture."""
    names = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
    names |= {node.attr for node in ast.walk(function) if isinstance(node, ast.Attribute)}
    return frozenset(names | {argument.arg for argument in function.args.args})


def _has_assertion(function: ast.FunctionDef) -> bool:
    for node in ast.walk(function):
        if isinstance(node, ast.Assert):
            return True
        if isinstance(node, ast.Raise) and "AssertionError" in ast.dump(node):
            return True
        if isinstance(node, ast.Call):
            name = _called_name(node)
            if name in _PYTHON_CHECKS or name.startswith("assert_"):
                return True
    return False


def python_file(text: str) -> File:
    """Return the functions of a Python module, and the modules that it imports."""
    tree = ast.parse(text)
    bodies, sources = [], ["conftest"]
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            test = node.name.startswith("test_")
            bodies.append(Body(node.name, test, _has_assertion(node), _names_used(node)))
        elif isinstance(node, ast.ImportFrom) and node.module:
            sources.append(node.module)
        elif isinstance(node, ast.Import):
            sources += [alias.name for alias in node.names]
    return File(bodies, sources)


def _end_of(text: str, begin: int) -> int:
    """Offset after the brace that closes the one at `begin`."""
    depth = 0
    for match in re.compile(r"[{}]").finditer(text, begin):
        depth += 1 if match[0] == "{" else -1
        if depth == 0:
            return match.end()
    return len(text)


def cpp_file(text: str) -> File:
    """Return the tests and functions of a C++ file, and the files that it includes."""
    sources = _CPP_INCLUDE.findall(text)
    # Braces and names in comments and strings do not count; a digit separator begins no character.
    text = _CPP_NOISE.sub('""', re.sub(r"(?<=[0-9a-fA-F])'(?=[0-9a-fA-F])", "", text))
    bodies = []

    def add(name: str, is_test: bool, brace: int) -> None:
        inner = text[brace : _end_of(text, brace)]
        calls = frozenset(_CPP_CALL.findall(inner))
        bodies.append(Body(name, is_test, bool(_CPP_CHECK.search(inner)), calls))

    for match in _CPP_TEST.finditer(text):
        add(f"{match[1]}.{match[2]}", True, match.end() - 1)
    for pattern in (_CPP_FUNCTION, _CPP_LAMBDA):
        for match in pattern.finditer(text):
            if match[1] not in _CPP_NO_FUNCTION and not match[1].startswith(("TEST", "TYPED_TEST")):
                add(match[1], False, match.end() - 1)
    return File(bodies, sources)


def _visible(files: Mapping[str, File], name: str) -> set[str]:
    """The file and all that it includes or imports, as far as they are among `files`."""
    seen, waiting = {name}, [name]
    while waiting:
        for source in files[waiting.pop()].sources:
            if source in files and source not in seen:
                seen.add(source)
                waiting.append(source)
    return seen


def unchecked(files: Mapping[str, File]) -> list[str]:
    """Return `FILE::TEST` of each test that checks nothing; files are named as others include them."""
    visible = {name: _visible(files, name) for name in files}
    checking = {(name, body.name) for name, file in files.items() for body in file.bodies if body.checks}

    def calls_a_check(name: str, body: Body) -> bool:
        return any((source, call) in checking for call in body.calls for source in visible[name])

    grown = True
    while grown:
        more = {
            (name, body.name)
            for name, file in files.items()
            for body in file.bodies
            if (name, body.name) not in checking and calls_a_check(name, body)
        }
        grown = bool(more)
        checking |= more
    return sorted(
        f"{name}::{body.name}"
        for name, file in files.items()
        for body in file.bodies
        if body.is_test and (name, body.name) not in checking
    )


def unchecked_below(root: Path) -> list[str]:
    """Return the tests below a folder that check nothing."""
    python: dict[str, File] = {}
    for path in sorted(root.rglob("*.py")):
        file = python_file(path.read_text(encoding="utf-8"))
        if path.stem in python:  # several conftest.py
            before = python[path.stem]
            file = File([*before.bodies, *file.bodies], [*before.sources, *file.sources])
        python[path.stem] = file
    paths = sorted([*root.rglob("*.cpp"), *root.rglob("*.h")])
    cpp = {path.relative_to(root).as_posix(): cpp_file(path.read_text(encoding="utf-8")) for path in paths}
    for name, file in cpp.items():  # includes are relative to the file's folder or to the root
        beside = [(Path(name).parent / source).as_posix() for source in file.sources]
        cpp[name] = File(file.bodies, [*beside, *file.sources])
    return unchecked(python) + unchecked(cpp)
