"""Docstrings and messages: the commands that they name are commands; no example is left out of doctest."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

import ptkit
from ptkit.cli.main import VERBS, build_parser

PACKAGE = Path(ptkit.__file__).parent
SOURCES = sorted(PACKAGE.rglob("*.py"))
# `ptkit record -o FILE -- true`, in one or two backticks; text that Python fills in is left out.
COMMAND = re.compile(r"(?<!`)`{1,2}(ptkit [^`{}]+)`{1,2}(?!`)")


def _commands() -> list[str]:
    found = {" ".join(one.split()) for path in SOURCES for one in COMMAND.findall(path.read_text())}
    return sorted(found)


@pytest.mark.parametrize("command", _commands())
def test_command_is_one_of_the_command_line(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    first, *rest = shlex.split(command)[1:]
    verb = [] if first.startswith("-") else [first]
    assert set(verb) <= set(VERBS)
    with pytest.raises(SystemExit) as ended:
        build_parser().parse_args([*verb, "--help-all"])
    assert ended.value.code == 0
    help = capsys.readouterr().out
    own = rest[: rest.index("--")] if "--" in rest else rest
    for option in (word for word in (first, *own) if word.startswith("-")):
        assert re.search(rf"(^|[\s\[]){re.escape(option)}\b", help), f"{verb} has no {option}"


def test_commands_are_found() -> None:
    assert "ptkit record -o FILE -- PROGRAM ARGS" in _commands()
    assert "ptkit msr list" in _commands()


def test_every_example_runs_in_doctest() -> None:
    skipped = [path.name for path in SOURCES if "doctest: +SKIP" in path.read_text()]
    assert skipped == [], "tests/codebase/test_docs.py runs them"
