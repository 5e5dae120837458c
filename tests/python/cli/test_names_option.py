"""Short and full names of functions that verbs print."""

from __future__ import annotations

import json
import re

import pytest
from compiling import build
from terminals import python_on_a_terminal
from test_json import ROWS, assert_fits

import ptkit
from ptkit.cli import main

SHORT = "store::Map::insert"
FULL = (
    "store::Map<int, long>::insert(int, long)",
    "store::Map<char, unsigned char>::insert(char, unsigned char)",
)
VERBS = (
    "functions --all",
    "tree --all",
    "calls --all",
    "edges --symbol store::*",
    "edges --by function --symbol store::*",
    "branches --symbol store::*",
    "instructions --symbol store::*",
)


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("names")
    ptkit.record([str(build("templates", folder, "-std=c++20", "-static"))], output=folder / "names.ptk")
    return str(folder / "names.ptk")


def words_of(verb: str, recording: str, *more: str) -> list[str]:
    name, *options = verb.split()
    return [name, recording, *options, *more]


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main([*words]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("verb", VERBS)
def test_pipes_have_full_names_and_terminals_short_ones(
    recording: str, capsys: pytest.CaptureFixture[str], verb: str
) -> None:
    words = words_of(verb, recording)
    in_pipe = printed(capsys, *words)
    assert all(name in in_pipe for name in FULL)
    assert SHORT not in in_pipe
    assert printed(capsys, *words, "--names", "full") == in_pipe
    shorter = printed(capsys, *words, "--names", "short")
    assert SHORT in shorter
    assert "unsigned char" not in shorter
    assert len(shorter.splitlines()) == len(in_pipe.splitlines())  # no rows are merged
    on_terminal = python_on_a_terminal(["-m", "ptkit", *words], errors_too=False)
    assert "::insert" in on_terminal
    assert "unsigned char" not in on_terminal


def test_full_names_are_not_cut(recording: str) -> None:
    words = ["functions", recording, "--all", "--names", "full"]
    shown = python_on_a_terminal(["-m", "ptkit", *words], errors_too=False)
    assert all(f"{name} (templates)" in shown for name in FULL)


@pytest.mark.parametrize("verb", [*VERBS, "functions --by line --all"])
def test_json_has_both_names(recording: str, capsys: pytest.CaptureFixture[str], verb: str) -> None:
    rows = [json.loads(line) for line in printed(capsys, *words_of(verb, recording, "--json")).splitlines()]
    pairs = set()
    assert_fits(ROWS, rows[-1]["table"], rows[-1])
    for row in rows:
        pairs |= {(row[name.removesuffix("_full")], row[name]) for name in row if name.endswith("_full")}
    assert {(SHORT, name) for name in FULL} <= pairs


def test_both_names_are_selected(recording: str, capsys: pytest.CaptureFixture[str]) -> None:
    def count(name: str) -> int:
        lines = printed(capsys, "calls", recording, "--symbol", name, "--json", "--all").splitlines()
        return sum(f'"entry_symbol": "{SHORT}"' in line for line in lines)

    for name in (SHORT, f"{SHORT} (templates)", f"{SHORT}()", "Map::insert", "store::*::insert"):
        assert count(name) == 80, name
    assert count(FULL[0]) == count(f"{FULL[1]} (templates)") == 40


def test_a_function_that_did_not_run_hides_no_last_parts(
    recording: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert printed(capsys, "calls", recording, "--symbol", "insert", "--json", "--all").count(SHORT) >= 80
    for option in ("--slow", "--histogram"):
        assert main(["functions", recording, option, "insert"]) == 2
        assert "'insert' is 2 functions that were called" in capsys.readouterr().err
    trace = ptkit.open(recording)
    with pytest.raises(ptkit.ConfigError, match="'insert' is 2 functions that were called"):
        trace.compare("insert")
    callers = trace.callers("insert")
    assert set(callers["function_full"][callers["depth"] == 0]) == set(FULL)
    for table in (trace.edges, trace.branches, trace.instructions):
        assert len(table(symbol="insert")) == len(table(symbol="Map::insert")) > 0
    assert {name for name, *_ in trace.symbols("insert")} == set(FULL)
    assert len(trace.edges(symbol="templates!insert")) == len(trace.edges(symbol="insert"))


def test_one_function_is_asked_for_by_its_full_name(
    recording: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for option in ("--slow", "--histogram"):
        assert main(["functions", recording, option, "store::parse"]) == 2
        errors = capsys.readouterr().err
        assert "'store::parse(int)'" in errors
        assert "'store::parse(char)'" in errors
    lines = printed(capsys, "functions", recording, "--slow", "store::parse(int)", "--names", "short")
    assert lines.startswith("store::parse: 80 calls")
    trace = ptkit.open(recording)
    with pytest.raises(ptkit.ConfigError, match=r"'store::parse' is 2 functions that were called: give one"):
        trace.compare("store::parse")
    found = trace.compare("store::parse(int)")
    assert (found.function, found.function_full) == ("store::parse", "store::parse(int)")
    assert {(one.name, one.name_full) for one in found.functions} == {("store::parse", "store::parse(int)")}
    assert all("(" not in one.name and "(" in one.name_full for one in found.edges)


@pytest.mark.parametrize("verb", ["functions --all", "tree --all", "calls --all", "edges --by function"])
def test_what_terminals_print_tells_functions_apart_and_is_selected(recording: str, verb: str) -> None:
    words = ["-m", "ptkit", *words_of(verb, recording)]
    shown = python_on_a_terminal(words, errors_too=False)
    trace = ptkit.open(recording)
    of_parse = ["store::parse(int)", "store::parse(char)"]
    for name, function in zip(
        ["store::Map<int*>::insert", "store::Map<char*>::insert", *of_parse], [*FULL, *of_parse], strict=True
    ):
        assert name.removeprefix("store::") in shown
        assert {one for one, *_ in trace.symbols(name)} == {function}
        assert trace.callers(name)["function_full"][0] == function


def test_python_columns(recording: str) -> None:
    functions = ptkit.open(recording).functions()
    found = functions.where(function=SHORT)
    assert set(found["function_full"]) == set(FULL)
    assert found["count"].tolist() == [40, 40]
    assert functions.column("function").doc != functions.column("function_full").doc


def test_narrow_terminals_keep_the_last_part(recording: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    for verb in ("functions", "tree"):
        shown = python_on_a_terminal(["-m", "ptkit", verb, recording, "--all"], errors_too=False)
        names = [line for line in shown.splitlines() if "::insert" in line]
        assert len(names) == 2
        assert all(len(line) <= 60 + len("\x1b[31m\x1b[0m") * 3 for line in names)


@pytest.mark.parametrize("name", ["parze", "prase(int)", "stor::parse", "Store::parse"])
def test_near_names_have_the_misspelt_part(
    name: str, recording: str, capsys: pytest.CaptureFixture[str]
) -> None:
    verbs = ("functions --symbol", "functions --slow", "functions --histogram", "tree --callers")
    for verb in verbs:
        assert main(words_of(verb, recording, name)) == 2
        errors = capsys.readouterr().err
        assert re.search(r"did you mean .*\bstore::parse\b", errors), (verb, errors)
        assert main(words_of(verb, recording, f"zzzzzzzz{name}")) == 2
        assert "did you mean" not in capsys.readouterr().err
