"""A second question about frames decodes nothing: sums over them are kept, and dropped."""

from __future__ import annotations

import copy
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compiling import build

import ptkit
from ptkit.decode import kept_sums


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sums")
    path = folder / "calls.ptk"
    ptkit.record([str(build("calls", folder, "-foptimize-sibling-calls"))], output=path)
    return path


def decoded(trace: Any) -> int:
    return int(trace.opened.session.decoded_bytes)


def equal(some: Any, others: Any) -> bool:
    assert some.columns == others.columns
    return len(some) > 0 and all(np.array_equal(some[name], others[name]) for name in some.columns)


QUESTIONS: dict[str, Any] = {
    "functions": lambda part: part.functions(),
    "entries": lambda part: part.functions("entry"),
    "modules": lambda part: part.functions("module"),
    "columns": lambda part: part.functions(columns=["function", "count"]),
    "times": lambda part: part.functions(columns=["function", "least", "p99"]),
    "tree": lambda part: part.call_tree(),
}
FIRST: dict[str, Any] = {**QUESTIONS, "calls": lambda part: part.calls()}
PARTS: dict[str, Any] = {
    "trace": lambda trace: trace,
    "view": lambda trace: trace.between(percent=(20, 70)),
    "slice": lambda trace: trace.slice(after=trace.events(stream=0)[:1]),
}


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("first", FIRST)
def test_questions_share_one_decode(recording: Path, part: str, first: str) -> None:
    trace = ptkit.open(recording)
    FIRST[first](PARTS[part](trace))
    asked = PARTS[part](trace)
    before = decoded(trace)
    found = {name: ask(asked) for name, ask in QUESTIONS.items()}
    assert decoded(trace) == before
    for name, ask in QUESTIONS.items():
        alone = ask(PARTS[part](ptkit.open(recording)))
        assert equal(found[name], alone)
        sides = (found[name].errors, alone.errors), (found[name].gaps, alone.gaps)
        for kept, own in sides:
            assert (kept is None) == (own is None)
            assert own is None or all(np.array_equal(kept[column], own[column]) for column in own.columns)


@pytest.mark.parametrize("name", QUESTIONS)
def test_verbs_of_the_command_line_keep_nothing(recording: Path, name: str) -> None:
    trace = ptkit.open(recording)
    trace.open_parts.keep_nothing()
    ask = QUESTIONS[name]
    found = ask(trace)
    before = decoded(trace)
    assert equal(ask(trace), found)
    assert decoded(trace) > before
    assert equal(ask(ptkit.open(recording)), found)


OTHERS: dict[str, Any] = {
    "selection": lambda trace: trace.functions(symbol="main"),
    "threads": lambda trace: trace.functions(tid=int(trace.streams[0].tid)),
    "tails": lambda trace: trace.functions(tails="replaced"),
    "inlines": lambda trace: trace.functions(inlines=True),
    "window": lambda trace: trace.between(percent=(0, 50)).functions(),
    "whole calls": lambda trace: trace.between(percent=(0, 50)).functions(whole_calls=True),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_frames_are_decoded(recording: Path, name: str) -> None:
    trace = ptkit.open(recording)
    trace.functions()
    before = decoded(trace)
    found = OTHERS[name](trace)
    assert decoded(trace) > before
    assert equal(found, OTHERS[name](ptkit.open(recording)))


def test_sums_are_dropped_with_settings_and_code(recording: Path) -> None:
    trace = ptkit.open(recording)
    trace.functions()
    opened = trace.open_parts.opened
    for changed in (
        replace(opened, settings=replace(opened.settings, resync="psb")),
        replace(opened, session=ptkit.open(recording).opened.session),
    ):
        trace.open_parts.opened = changed
        before = decoded(trace)
        trace.functions()
        assert decoded(trace) > before


def test_code_from_a_callback_is_asked_for_again(recording: Path) -> None:
    code = ptkit.open(recording)
    asked: list[int] = []

    def answer(address: int, size: int, space: int) -> bytes | None:
        asked.append(address)
        return code.code(address, size, space=space)

    trace = ptkit.open(recording, image_callback=answer)
    trace.functions()
    before = decoded(trace)
    trace.functions()
    assert decoded(trace) > before


def test_what_is_kept_is_bounded(recording: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = ptkit.open(recording)
    trace.functions()
    kept = trace.opened.kept
    assert kept is not None
    size = kept.nbytes
    assert 0 < size < 64 << 20
    monkeypatch.setattr(kept_sums, "_MOST_BYTES", size + 100)
    trace.functions(tails="replaced")
    assert 0 < kept.nbytes <= size + 100
    before = decoded(trace)
    trace.functions("module", tails="replaced")  # the last ones are kept
    assert decoded(trace) == before
    trace.functions()
    assert decoded(trace) > before


def test_large_sums_are_not_kept(recording: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = ptkit.open(recording)
    whole.functions()
    assert whole.opened.kept is not None
    monkeypatch.setattr(kept_sums, "_MOST_BYTES", whole.opened.kept.nbytes - 1)
    trace = ptkit.open(recording)
    trace.functions()
    before = decoded(trace)
    kept = trace.opened.kept
    assert kept is not None
    assert 0 < kept.nbytes < whole.opened.kept.nbytes
    assert equal(trace.functions("module"), whole.functions("module"))
    assert decoded(trace) == before
    for ask in QUESTIONS.values():
        assert equal(ask(trace), ask(whole))
    assert decoded(trace) > before  # the largest ones were left out


def test_threads_and_copies_share_what_is_kept(recording: Path) -> None:
    trace = ptkit.open(recording)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda by: trace.functions(by), ["function", "entry", "module"] * 4))
    for table, by in zip(found, ["function", "entry", "module"] * 4, strict=True):
        assert equal(table, ptkit.open(recording).functions(by))
    before = decoded(trace)
    assert equal(copy.copy(trace).functions(), found[0])
    assert decoded(trace) == before
