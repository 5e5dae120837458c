"""Warnings are rows of src/trace/warnings.def: each is used, and asserted by its code."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TABLE = ROOT / "src" / "trace" / "warnings.def"
TABLE_TESTS = {"test_warnings.cpp", "test_warnings.py"}
ROWS = re.findall(
    r'^PT_WARNING\((\w+), (NOTE|DEGRADED|LOSS), "((?:[^"\\]|\\.)+)", "((?:[^"\\]|\\.)*)"\)$',
    TABLE.read_text(),
    re.MULTILINE,
)
CODES = [row[0] for row in ROWS]

# No test brings these about: they need more data than a test has, or a failure of the system. Their sentences
# are tested.
NOT_PROVOKED = {
    "BRANCH_STACKS_SKIPPED",
    "BUILD_ID_MISMATCH",
    "DRIVER_RECORDS_INVALID",
    "EXECUTION_LOG_FAILED",
    "GUEST_INTERRUPTS",
    "GUEST_NOT_RECORDED",
    "JIT_LIMIT",
    "KERNEL_CODE_CHANGED",
    "PIP_INTERRUPTED",
    "PIP_LIMIT",
    "SIMPLE_PT_MAPPING_LIMIT",
    "WARNINGS_DROPPED",
}


def _files(*folders: str) -> Iterator[Path]:
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in {".h", ".cpp", ".py"}:
                yield path


def _codes_in(*folders: str) -> set[str]:
    found: set[str] = set()
    for path in _files(*folders):
        if path.name not in TABLE_TESTS:
            found.update(re.findall(r'(?:WarningCode::|")([A-Z][A-Z0-9_]+)\b', path.read_text()))
    return found


def test_rows_are_well_formed() -> None:
    lines = [line for line in TABLE.read_text().splitlines() if line.startswith("PT_WARNING")]
    assert len(ROWS) == len(lines) > 100
    assert len(set(CODES)) == len(CODES)


def test_every_code_is_used() -> None:
    used = _codes_in("src", "python/ptkit")
    assert [code for code in CODES if code not in used] == []


def test_every_code_is_asserted() -> None:
    asserted = _codes_in("tests")
    assert [code for code in CODES if code not in asserted | NOT_PROVOKED] == []
    assert sorted(NOT_PROVOKED & asserted) == []
    assert sorted(NOT_PROVOKED - set(CODES)) == []


def test_no_warning_is_made_of_a_literal() -> None:
    made = re.compile(
        r'warnings?_?(?:\.|->)(?:push_back|emplace_back|insert)\(\s*(?:std::string\()?"'
        r'|\b(?:add_)?warning\(\s*"'
        r'|\bWarningCode::\w+,[^;]*"[a-z]\w* \w+[^"]*"'  # a sentence as an argument
    )
    found = [
        f"{path.relative_to(ROOT)}: {match[0]}"
        for path in _files("src")
        for match in made.finditer(path.read_text())
    ]
    assert found == []
    # Sentences without a code come from bundles, and from the recorder for Windows.
    recorded = {
        path.relative_to(ROOT / "src").as_posix()
        for path in _files("src")
        if "WarningCode::RECORDED" in path.read_text()
    }
    assert recorded == {"formats/ptk/reader.cpp", "capture/windows/session.cpp"}


def test_no_python_warning_is_made_of_a_literal() -> None:
    for path in _files("python/ptkit"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "warnings.warn":
                is_ours = any(ast.unparse(argument) == "PtkitWarning" for argument in node.args)
                assert not is_ours or not isinstance(node.args[0], (ast.Constant, ast.JoinedStr)), path
