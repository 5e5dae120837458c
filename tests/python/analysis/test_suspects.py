"""Flaky programs: what separates failing from passing recordings, and how easily chance does the same."""

from __future__ import annotations

import itertools
import math
import os
import random
import shutil
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compiling import PROGRAMS, compiled, line_with
from rounds import needs_emulator

import ptkit
from ptkit.analysis.suspects import Source, find_suspects, measure

pytestmark = needs_emulator
SOURCE = PROGRAMS / "branches" / "flaky.c"
line = partial(line_with, SOURCE)
LEAST = 4  # recordings of each kind
RUNS = 12
MOST_RUNS = 80


@dataclass
class Runs:
    """Recordings of one command."""

    passing: list[Path]
    failing: list[Path]

    def suspects(self, **options: Any) -> ptkit.Suspects:
        return ptkit.suspects(self.passing, self.failing, **options)


def recorded(program: Path, kind: str, folder: Path, number: int) -> tuple[Path, int]:
    path = folder / f"{kind}-{number}.ptk"
    recorder = ptkit.Recorder([str(program), kind], path, backend="emulator", quiet=True)
    recorder.run()
    status = recorder.recording.exit_status
    assert status in (0, 1)
    return path, status


def flaky(program: Path, kind: str, folder: Path) -> Runs:
    """Record until there are enough that fail, and enough that pass."""
    runs = Runs([], [])
    for number in range(MOST_RUNS):
        path, status = recorded(program, kind, folder, number)
        (runs.failing if status else runs.passing).append(path)
        if min(len(runs.passing), len(runs.failing)) >= LEAST and number >= RUNS - 1:
            return runs
    pytest.fail(
        f"{kind}: {len(runs.failing)} of {MOST_RUNS} runs fail; {LEAST} should, and {LEAST} should not"
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("flaky")


@pytest.fixture(scope="module")
def program(folder: Path) -> Path:
    return compiled(folder / "flaky", "-O1", "-g", "-static", "-pthread", "-Wl,--build-id", SOURCE)


@pytest.fixture(scope="module")
def race(program: Path, folder: Path) -> Runs:
    return flaky(program, "race", folder)


@pytest.fixture(scope="module")
def seeded(program: Path, folder: Path) -> Runs:
    return flaky(program, "seed", folder)


@pytest.fixture(scope="module")
def found(race: Runs) -> ptkit.Suspects:
    return race.suspects()


def first(suspects: ptkit.Suspects, *columns: str) -> tuple[Any, ...]:
    return tuple(suspects.table[:1].named(name)[0] for name in columns)


def test_line_of_a_check_before_an_act_is_first(race: Runs, found: ptkit.Suspects) -> None:
    assert first(found, "aspect", "function", "line") == ("branch", "use_table", line("RACE:"))
    assert first(found, "score", "failing", "passing") == (1.0, len(race.failing), 0)
    assert first(found, "more_than") == (
        1,
    )  # one thread comes there in each run, a second one where it fails
    assert first(found, "source")[0].endswith(SOURCE.name)
    assert f"taken, to {SOURCE.name}:{line('table = make_table();')}" == first(found, "fact")[0]
    assert found.failing == tuple(map(str, race.failing))
    assert not found.left_out
    assert not found.notes


def test_order_of_threads_that_no_branch_tests_is_first(program: Path, folder: Path) -> None:
    found = flaky(program, "lost", folder).suspects()
    assert first(found, "aspect") == ("order",)
    # From the load to the store: branches and calls are all that a trace has of it.
    section = (*range(line("int value = updates;"), line("updates = value;") + 1), line("usleep(3000)"))
    assert set(found.table.named("line")[:5]) & set(section)
    assert first(found, "function")[0] in ("update", "parse", "wait_for_input")
    assert abs(first(found, "score")[0]) == 1
    lines = found.table.named("line")
    assert line("fputs") in lines, "the report of the failure separates, too"


def test_line_that_a_hash_seed_decides_is_first(seeded: Runs) -> None:
    found = seeded.suspects()
    assert first(found, "aspect", "line", "more_than") == ("branch", line("SEED:"), 0)
    assert first(found, "fact")[0].startswith("taken, to ")


def test_line_of_an_uninitialised_read_is_first(program: Path, folder: Path) -> None:
    found = flaky(program, "unset", folder).suspects()
    assert first(found, "aspect", "function", "line", "more_than") == (
        "branch",
        "read_unset",
        line("UNSET:"),
        0,
    )


def test_addresses_and_folders_do_not_matter(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The dynamic linker, run as a program, maps this one behind the stack, of which the size differs."""
    copies = [folder / name / "moved" for name in ("here", "there")]
    for one in copies:
        one.parent.mkdir()
    compiled(copies[0], "-O1", "-g", "-pthread", "-Wl,--build-id", SOURCE)
    shutil.copy2(copies[0], copies[1])
    runs, bases = Runs([], []), set()
    sizes = random.Random(3)
    for number in range(MOST_RUNS):
        monkeypatch.setenv("QEMU_STACK_SIZE", str(0x800000 + 0x1000 * sizes.randrange(1, 1 << 12)))
        path = folder / f"moved-{number}.ptk"
        command = ["/lib64/ld-linux-x86-64.so.2", str(copies[number % 2]), "unset"]
        recorder = ptkit.Recorder(command, path, backend="emulator", quiet=True)
        recorder.run()
        (runs.failing if recorder.recording.exit_status else runs.passing).append(path)
        if min(len(runs.passing), len(runs.failing)) >= 3:
            break
    for path in (*runs.passing, *runs.failing):
        [main] = [ip for name, ip, _ in ptkit.open(path).symbols("main") if name == "main"]
        bases.add(main)
    assert len(bases) > 2
    found = runs.suspects()
    assert first(found, "module", "line", "score") == ("moved", line("UNSET:"), 1.0)
    assert [file.name for file in found.files].count("moved") == 1


def test_selected_code_alone_is_looked_at(race: Runs, found: ptkit.Suspects) -> None:
    of_main = race.suspects(symbol="report")
    assert set(of_main.table.named("function")) <= {"report", "main"}
    assert 0 < of_main.facts < found.facts
    assert set(race.suspects(module="flaky").table.named("module")) == {"flaky"}


def test_table_has_a_row_for_each_fact(found: ptkit.Suspects, race: Runs) -> None:
    table = found.table
    frame = table.to_pandas()
    assert len(frame) == len(table)
    scores = np.abs(table["score"])
    assert (scores[:-1] >= scores[1:] - 1e-9).all()
    expected = table["failing"] / len(race.failing) - table["passing"] / len(race.passing)
    np.testing.assert_allclose(table["score"], expected)
    assert ((table["score"] > 0) == table["of_failing"]).all()
    assert table["is_own"][0]
    assert set(table.named("aspect")) <= {"branch", "call", "path", "order"}
    short = race.suspects(limit=3)
    assert short.table.named("fact") == table.named("fact")[:3]
    assert f"{found.facts:,} facts" in str(found)
    assert found.sentence in found._repr_html_()


def test_own_code_comes_before_libraries(found: ptkit.Suspects) -> None:
    table = found.table
    best = table["is_own"][np.abs(table["score"]) == 1]
    assert best.any()
    assert not best.all()
    assert (best[:-1] >= best[1:]).all()


# ---- chance


def test_few_recordings_say_how_easily_chance_does_this_well(seeded: Runs) -> None:
    few = Runs(seeded.passing[:2], seeded.failing[:2]).suspects()
    assert first(few, "line") == (line("SEED:"),)
    assert few.chance.is_exact
    assert (
        few.sentence
        == f"with 4 recordings and {few.facts:,} facts, chance does this well in 1 of 3 labelings"
    )
    assert few.sentence in str(few)
    assert first(few, "p")[0] == pytest.approx(1 / 3)


def test_chance_is_the_share_of_labelings() -> None:
    random_bits = np.random.default_rng(1)
    is_failing = np.arange(7) >= 4
    counts = random_bits.integers(0, 4, (40, 7))
    splits, patterns = measure.best_splits(counts, is_failing)
    for fact, row in enumerate(counts.tolist()):
        wanted = max(
            (abs(score_of([count > limit for count in row], is_failing)) for limit in range(4)), default=0
        )
        assert abs(splits.score[fact]) == pytest.approx(wanted)
        has = [count > splits.more_than[fact] for count in row]
        if wanted:
            assert splits.has[fact].tolist() == has
            assert score_of(has, is_failing) == pytest.approx(splits.score[fact])
    best = float(np.abs(splits.score).max())
    hits = 0
    for chosen in itertools.combinations(range(7), 3):
        labels = np.isin(np.arange(7), chosen)
        hits += (
            max(
                abs(score_of([count > limit for count in row], labels))
                for row in counts.tolist()
                for limit in range(4)
            )
            >= best - 1e-9
        )
    chance = measure.chance_of(best, patterns, is_failing)
    assert (chance.hits, chance.labelings, chance.is_exact) == (hits, math.comb(7, 3), True)
    assert 0 < chance.p <= 1


def score_of(has: list[bool], is_failing: Any) -> float:
    """Youden's J, in words."""
    failing = [one for one, failed in zip(has, is_failing, strict=True) if failed]
    passing = [one for one, failed in zip(has, is_failing, strict=True) if not failed]
    return sum(failing) / len(failing) - sum(passing) / len(passing)


def test_many_labelings_are_sampled_with_one_seed() -> None:
    is_failing = np.arange(30) >= 15
    noise = np.random.default_rng(5).integers(0, 2, (300, 30)).astype(np.bool_)
    perfect = np.concatenate([noise, is_failing[None, :]])
    rare = measure.chance_of(1.0, perfect, is_failing)
    assert not rare.is_exact
    assert (rare.hits, rare.labelings) == (0, 2000)
    assert rare.p == pytest.approx(1 / 2001)
    assert str(rare) == "in 0 of 2,000 random labelings"
    # What the best of 300 random facts scores is what chance does.
    weak = measure.chance_of(7 / 15, noise, is_failing)
    assert weak.hits > 1000
    assert weak == measure.chance_of(7 / 15, noise, is_failing)


def test_fisher_is_the_sum_of_tables_that_are_no_likelier() -> None:
    for having, failing, others, passing in ((3, 3, 0, 3), (2, 4, 1, 5), (0, 3, 4, 4), (1, 2, 1, 2)):
        runs = [1] * failing + [0] * passing
        marked = having + others
        seen = [
            sum(runs[index] for index in chosen)
            for chosen in itertools.combinations(range(len(runs)), marked)
        ]
        likely = {number: seen.count(number) for number in set(seen)}
        expected = sum(ways for ways in likely.values() if ways <= likely[having]) / len(seen)
        assert measure.fisher(having, failing, others, passing) == pytest.approx(expected)


# ---- recordings that are left out


def test_unreadable_recording_is_named_and_left_out(
    race: Runs, found: ptkit.Suspects, tmp_path: Path
) -> None:
    bad = tmp_path / "cut <b>.ptk"
    bad.write_bytes(race.failing[0].read_bytes()[:100])
    missing = tmp_path / "missing.ptk"
    with pytest.warns(ptkit.PtkitWarning) as caught:
        some = ptkit.suspects([*race.passing, missing], [bad, *race.failing])
    said = [str(one.message) for one in caught]
    assert [f"{missing} is left out: " in said[0], f"{bad} is left out: " in said[1]] == [True, True]
    assert [one.source for one in some.left_out] == [str(missing), str(bad)]
    assert all(one.reason for one in some.left_out)
    assert first(some, "fact", "line", "score") == first(found, "fact", "line", "score")
    assert some.facts == found.facts
    page = some._repr_html_()
    assert "cut &lt;b&gt;.ptk" in page
    assert "<b>" not in page


def test_other_build_is_left_out(race: Runs, tmp_path: Path) -> None:
    program = compiled(tmp_path / "flaky", "-O2", "-g", "-static", "-pthread", "-Wl,--build-id", SOURCE)
    other, _ = recorded(program, "seed", tmp_path, 0)
    with pytest.warns(ptkit.PtkitWarning, match="two builds of the file ran"):
        some = ptkit.suspects(race.passing[:2], [*race.failing[:2], other])
    assert [one.source for one in some.left_out] == [str(other)]


def test_group_without_recordings_is_refused(race: Runs, tmp_path: Path) -> None:
    with pytest.raises(ptkit.ConfigError, match="there is no failing recording"):
        ptkit.suspects(race.passing, [])
    with (
        pytest.warns(ptkit.PtkitWarning),
        pytest.raises(
            ptkit.ConfigError, match=r"none of the 1 passing recording can be used: .*missing\.ptk"
        ),
    ):
        ptkit.suspects([tmp_path / "missing.ptk"], race.failing)
    with pytest.raises(ptkit.ConfigError, match="the recording is given twice"):
        ptkit.suspects(race.passing[:1], race.passing[:1])
    with pytest.raises(ptkit.ConfigError, match="limit"):
        ptkit.suspects(race.passing, race.failing, limit=0)


def test_one_recording_is_in_memory_at_a_time(race: Runs) -> None:
    alive: list[weakref.ref[ptkit.Trace]] = []

    def opener(path: Path) -> Callable[[], ptkit.Trace]:
        def open_one() -> ptkit.Trace:
            assert not [one for one in alive if one() is not None]
            trace = ptkit.open(path)
            alive.append(weakref.ref(trace))
            return trace

        return open_one

    def sources(paths: list[Path]) -> Iterator[Source]:
        return (Source(os.fspath(path), opener(path)) for path in paths)

    found = find_suspects(sources(race.passing[:3]), sources(race.failing[:3]), {})
    assert len(alive) == 6
    assert first(found, "line") == (line("RACE:"),)


def test_traces_are_taken_as_they_are(race: Runs) -> None:
    traces = [ptkit.open(path) for path in (race.passing[0], race.failing[0])]
    some = ptkit.suspects(traces[0], iter(traces[1:]))
    assert some.passing == (str(race.passing[0]),)
    assert some.sentence.endswith("chance does this well in 1 of 1 labelings")


def test_equal_recordings_have_nothing_that_separates(race: Runs, tmp_path: Path) -> None:
    copy = tmp_path / "copy.ptk"
    shutil.copy2(race.passing[0], copy)
    none = ptkit.suspects([race.passing[0]], [copy])
    assert len(none.table) == 0
    assert none.sentence == f"no fact of {none.facts:,} separates the 2 recordings"
    assert none.sentence in str(none)


def test_code_in_no_file_has_no_facts(loop: Any, tmp_path: Path) -> None:
    paths = [tmp_path / f"{number}.ptk" for number in range(2)]
    for rounds, path in enumerate(paths, 3):
        ptkit.open(loop.stream(rounds), cpu="6/142/9", images=[(loop.CODE, loop.BASE)]).save(path)
    found = ptkit.suspects(paths[:1], paths[1:])
    assert (found.facts, len(found.table)) == (0, 0)
    assert sum("ran in no file" in note for note in found.notes) == 2
