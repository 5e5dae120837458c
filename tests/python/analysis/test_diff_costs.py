"""Calls and instructions of two runs, and of two builds of one program."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from compiling import PROGRAMS, compiled

import ptkit
from ptkit.analysis.diff.costs import Cost, FunctionKey, base_name, matched_functions

SOURCE = PROGRAMS / "branches" / "builds.c"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Recordings of both builds; the second one also under another name."""
    folder = tmp_path_factory.mktemp("builds")
    flags = "-O1", "-g", "-static", "-Wl,--build-id", SOURCE
    for name, path, more in (
        ("first", "one/builds", ()),
        ("second", "two/builds", ("-DSECOND",)),
        ("named", "builds-2", ("-DSECOND",)),
    ):
        (folder / path).parent.mkdir(exist_ok=True)
        program = compiled(folder / path, *more, *flags)
        ptkit.Recorder([str(program)], folder / f"{name}.ptk", backend="emulator", quiet=True).run()
    return folder


@pytest.fixture(scope="module")
def builds(folder: Path) -> ptkit.Difference:
    return ptkit.diff(folder / "first.ptk", folder / "second.ptk")


def instructions(path: Path) -> int:
    return int(ptkit.open(path).blocks(columns=["instructions"])["instructions"].sum())


def rows(table: ptkit.Table) -> dict[str, dict[str, object]]:
    """Rows of functions by name."""
    columns = {name: table.named(name) for name in table.columns}
    found = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return {str(row["function"]): row for row in found}


def test_two_builds_are_compared_by_function(folder: Path, builds: ptkit.Difference) -> None:
    assert builds.by == "function"
    assert builds.equal is False
    assert len(builds.divergences) == 0
    assert any("two builds of the file ran" in sentence for sentence in builds.unjudged)
    found = rows(builds.functions)
    delta = instructions(folder / "second.ptk") - instructions(folder / "first.ptk")
    assert int(builds.functions["delta"].sum()) == delta
    assert builds.functions.named("function")[0] == "slower"
    assert found["slower"]["matched"] == "name"
    assert int(builds.functions["delta"][0]) > 60_000


def test_order_is_by_difference(builds: ptkit.Difference) -> None:
    size = np.abs(builds.functions["delta"])
    assert (size[1:] <= size[:-1]).all()


def test_functions_that_changed_their_names(builds: ptkit.Difference) -> None:
    found = rows(builds.functions)
    assert (found["sum_up"]["matched"], found["sum_up"]["b_name"]) == ("renamed", "total_of_all")
    assert "total_of_all" not in found
    assert found["sum_up"]["a_count"] == found["sum_up"]["b_count"] == 20
    assert found["copied"]["matched"] == "name; parts joined"
    assert found["copied"]["a_count"] == found["copied"]["b_count"] == 20


def test_inlined_functions_are_matched(builds: ptkit.Difference) -> None:
    found = rows(builds.functions)["helper"]
    assert found["matched"] == "inlined in b"
    assert found["a_count"] == found["b_count"] == 20 + sum(range(20))


def test_functions_of_one_build(builds: ptkit.Difference) -> None:
    found = rows(builds.functions)
    assert found["only_first"]["matched"] == "only in a"
    assert found["only_second"]["matched"] == "only in b"
    assert (found["only_first"]["b_count"], found["only_second"]["a_count"]) == (0, 0)
    assert (found["same"]["a_count"], found["same"]["b_count"]) == (21, 20)
    begin = SOURCE.read_text().splitlines().index("APART static void only_second(void)") + 1
    assert found["only_second"]["line"] in range(begin, begin + 3)


def test_calls(builds: ptkit.Difference) -> None:
    calls = {
        (caller, callee): counts
        for caller, callee, *counts in zip(
            *(builds.calls.named(name) for name in ("caller", "function", "a_count", "b_count")), strict=True
        )
    }
    assert calls["only_first", "same"] == [1, 0]
    assert calls["main", "only_second"] == [0, 1]
    assert ("main", "same") not in calls
    assert ("main", "sum_up") not in calls  # renamed, and called as often
    alone = [min(counts) == 0 for counts in calls.values()]
    assert alone == sorted(alone, reverse=True)


def test_a_program_of_another_name(folder: Path, builds: ptkit.Difference) -> None:
    found = ptkit.diff(folder / "first.ptk", folder / "named.ptk")
    assert found.by == "function"
    assert any("builds-2 is compared with builds" in sentence for sentence in found.unjudged)
    assert rows(found.functions).keys() >= rows(builds.functions).keys()
    assert rows(found.functions)["copied"] == rows(builds.functions)["copied"]


def test_builds_without_an_id_are_told_apart_by_their_code(tmp_path: Path) -> None:
    paths = []
    for name, more in (("one", ()), ("two", ()), ("three", ("-DSECOND",))):
        (tmp_path / name).mkdir()
        program = compiled(
            tmp_path / name / "builds", *more, "-O1", "-g", "-static", "-Wl,--build-id=none", SOURCE
        )
        paths.append(tmp_path / f"{name}.ptk")
        ptkit.Recorder([str(program)], paths[-1], backend="emulator", quiet=True).run()
    assert not any(build_id for _, build_id in ptkit.open(paths[0]).info.files)
    assert (ptkit.diff(*paths[:2]).by, ptkit.diff(*paths[1:]).by) == ("branch", "function")


def test_lines(folder: Path) -> None:
    found = ptkit.diff(folder / "first.ptk", folder / "second.ptk", by="line")
    assert found.by == "line"
    delta = instructions(folder / "second.ptk") - instructions(folder / "first.ptk")
    assert int(found.lines["delta"].sum()) == delta
    first = SOURCE.read_text().splitlines()[int(found.lines["line"][0]) - 1]
    assert "trip" in first
    assert found.lines.named("source")[0] == str(SOURCE)


def test_one_build_by_function(folder: Path) -> None:
    path = folder / "first.ptk"
    for by in ("function", "line"):
        found = ptkit.diff(path, path, by=by)
        assert found.equal is True
        assert len(found.functions) == len(found.calls) == len(found.lines) == 0
        assert "no difference" in str(found)


def test_filters(folder: Path, builds: ptkit.Difference) -> None:
    paths = folder / "first.ptk", folder / "second.ptk"
    own = ptkit.diff(*paths, own=True)
    assert rows(own.functions).keys() <= rows(builds.functions).keys()
    only = ptkit.diff(*paths, symbol="only_*")
    assert sorted(rows(only.functions)) == ["only_first", "only_second"]
    renamed = ptkit.diff(*paths, symbol="total_of_all")
    assert list(rows(renamed.functions)) == ["sum_up"]
    with pytest.raises(ptkit.ConfigError, match="time: functions and lines are of whole runs"):
        ptkit.diff(*paths, by="function", time=(0, 1))


@pytest.mark.parametrize(
    ("name", "base"),
    [
        ("work", "work"),
        ("work.cold", "work"),
        ("work.part.0", "work"),
        ("work.constprop.0.isra.1", "work"),
        ("work.lto_priv.12", "work"),
        ("work.part.3.cold", "work"),
        ("space::work(int) [clone .cold]", "space::work(int)"),
        ("thread 4711 (sort)", "thread (sort)"),
        ("work.partial", "work.partial"),
        (".cold", ""),
    ],
)
def test_base_names(name: str, base: str) -> None:
    assert base_name(name) == base


def test_a_function_has_one_other_name_at_most() -> None:
    def cost(line: int) -> Cost:
        return Cost(10, 1000, 1000, {"x"}, "a.c", line, False, {("from", "main")})

    key = FunctionKey
    a = {key("p", "left"): cost(10), key("p", "right"): cost(30)}
    b = {key("p", "other"): cost(12), key("q", "elsewhere"): cost(30)}
    rows = matched_functions(a, b)
    assert rows == {key("p", "left"): (key("p", "other"), "renamed")}
    b[key("p", "more")] = cost(33)
    assert {one.name: other.name for one, (other, _) in matched_functions(a, b).items()} == {
        "left": "other",
        "right": "more",
    }
