"""Functions of just the name that others have in short, or as the last part of their names."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from compiling import build
from terminals import python_on_a_terminal

import ptkit
from ptkit.cli import main
from ptkit.decode.call_names import called_functions

COUNTS = {
    "scan": 20,
    "scan(int)": 30,
    "pool::scan(char)": 40,
    "reset(char)": 50,
    "pool::Pool::reset(int)": 60,
    "pool::finish(char)": 70,
    "pool::close(int)": 80,
}
NAMES = {
    "scan": "scan",
    "reset": "reset(char)",
    "finish": "pool::finish(char)",
    "close": "pool::close(int)",
    "Pool::reset": "pool::Pool::reset(int)",
    "reset(*)": "reset(char)",
    **{name: name for name in COUNTS},
}
# Whole files have functions that were not called, and these come first.
NOT_CALLED = ("reset", "finish")


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """What `ptkit` opens: the recording, with code that was executed; and its stream, with the whole file."""
    folder = tmp_path_factory.mktemp("same")
    program = build("same_names", folder, "-static")
    ptkit.record([str(program)], output=folder / "same.ptk").export(folder / "same.pt", format="raw")
    whole = [str(folder / "same.pt"), "--image", str(program), "--processor", "6/142/9"]
    return {"executed code": [str(folder / "same.ptk")], "whole file": whole}


def opened(source: list[str]) -> Any:
    return ptkit.open(source[0], images=source[2:3] or None, cpu="6/142/9")


def selected(trace: Any, name: str) -> dict[str, int]:
    """Calls of each function that a name selects; every method has the same ones."""
    functions = trace.functions(symbol=name)
    counts = dict(zip(functions["function_full"].tolist(), functions["count"].tolist(), strict=True))
    tree = trace.call_tree(symbol=name, columns=["function_full"])
    calls = trace.calls(symbol=name)
    entered = trace.branches(symbol=name).where(kind="call", to_symbol=[*counts])
    assert set(tree["function_full"]) == set(calls["entry_symbol_full"]) == set(counts)
    assert len(calls) == len(entered) == sum(counts.values())
    return counts


@pytest.mark.parametrize("source", ["executed code", "whole file"])
@pytest.mark.parametrize("name", NAMES)
def test_names_select_the_same_function_everywhere(
    sources: dict[str, list[str]], source: str, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words, trace, full = sources[source], opened(sources[source]), NAMES[name]
    if source == "whole file" and name in NOT_CALLED:
        assert selected(trace, name) == {}
        for ask in (trace.compare, trace.callers):
            with pytest.raises(ptkit.SymbolError, match=f"no function '{name}' was called; did you mean '"):
                ask(name)
        for option in ("--histogram", "--slow"):
            assert main(["functions", *words, option, name]) == 2
            assert repr(full) in capsys.readouterr().err
        assert main(["tree", *words, "--callers", name]) == 2
        return
    assert selected(trace, name) == {full: COUNTS[full]}
    callers = trace.callers(name, depth=0)
    assert dict(zip(callers["function_full"], callers["count"], strict=True)) == {full: COUNTS[full]}
    compared = trace.compare(name, sample=0)
    assert (compared.function_full, compared.calls) == (full, COUNTS[full])
    assert main(["functions", *words, "--histogram", name, "--of", "instructions", "--json"]) == 0
    bins = [json.loads(line) for line in capsys.readouterr().out.splitlines()[1:]]
    assert sum(one["count"] for one in bins) == COUNTS[full]
    assert main(["functions", *words, "--slow", name]) == 0
    assert capsys.readouterr().out.startswith(f"{full}: {COUNTS[full]} calls")


def test_patterns_select_all(sources: dict[str, list[str]]) -> None:
    for source in sources.values():
        found = selected(opened(source), "*scan*")
        assert found == {name: COUNTS[name] for name in ("scan", "scan(int)", "pool::scan(char)")}


def test_functions_without_a_symbol_are_known_by_their_names(sources: dict[str, list[str]]) -> None:
    trace = opened(sources["executed code"])
    columns = ["function_full", "count", "entry_ip", "entry_known", "is_inlined", "space"]
    functions = trace.functions(columns=columns)

    def found(name: str, ranges: list[tuple[int, int, None]]) -> set[str]:
        return set(functions[called_functions(functions, functions["count"], name, ranges)]["function_full"])

    assert found("scan", []) == {"scan"}
    assert found("reset", []) == {"reset(char)"}
    assert found("close", []) == {"pool::close(int)"}
    with pytest.raises(ptkit.SymbolError, match="no function 'close' was called; did you mean 'pool::close"):
        found("close", [(0x1000, 0x1FFF, None)])


def test_differences_of_slow_calls_are_told_apart(sources: dict[str, list[str]]) -> None:
    (path,) = sources["executed code"]
    words = ["-m", "ptkit", "functions", path, "--slow", "turn"]
    shown = python_on_a_terminal(words, errors_too=False)
    for name in ("put(int)", "put(char)"):
        assert sum(line.split()[-1] == name for line in shown.splitlines() if line.split()) > 0, shown
        assert shown.count(name) > 2  # of edges, too
    assert shown.startswith("turn: 90 calls")
    whole = python_on_a_terminal([*words, "--names", "full"], errors_too=False)
    assert "turn(int): 90 calls" in whole
    found = opened(sources["executed code"]).compare("turn")
    assert "put(int) +" in repr(found)
    assert "put(char) +" in repr(found)
    assert all(f">{name}<" in found._repr_html_() for name in ("put(int)", "put(char)"))
    assert {one.name for one in found.functions} == {"turn", "put"}  # the column, as that of other tables


@pytest.mark.parametrize("verb", ["edges", "branches", "instructions"])
def test_addresses_on_terminals_have_names_that_select_their_function(
    sources: dict[str, list[str]], verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (path,) = sources["executed code"]
    words = [verb, path, "--symbol", "*(int)", "--symbol", "*(char)", "--symbol", "scan"]
    shown = python_on_a_terminal(["-m", "ptkit", *words], errors_too=False)
    printed = set(re.findall(r"(?<= )([\w:]+(?:\([\w*]*\))?)(?=\+0x|\s|>|$)", shown))
    trace = opened(sources["executed code"])
    functions = {*COUNTS, "put(int)", "put(char)"}
    names = printed & (functions | {name.partition("(")[0] for name in functions})
    selects = {name: functions & {one for one, *_ in trace.symbols(name)} for name in names}
    assert set.union(*selects.values()) == functions
    assert selects["scan"] == {"scan"}  # what is printed of the others selects them
    assert selects["scan(int)"] == {"scan(int)"}
    if verb == "edges":  # known as a whole
        assert all(len(found) == 1 for found in selects.values())
        assert "put" not in selects
    else:
        assert selects["put"] == {"put(int)", "put(char)"}
    assert main([*words, "--names", "full"]) == 0
    assert "put(int)+0x" in capsys.readouterr().out
