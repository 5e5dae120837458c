"""The programs of the self-test: what they execute is known, and does not change."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

from ptkit.capture import ptrace
from ptkit.msr import capabilities
from ptkit.selftest import programs
from ptkit.selftest.bench import Bench
from ptkit.selftest.code import Code
from ptkit.selftest.compare import expect_all

ALL = [
    programs.branches(1, 3000),
    programs.branches(2, 3000),
    programs.deep_returns(2),
    programs.filtered(5),
    programs.long_targets(500),
    programs.spinning(200),
]

needs_steps = pytest.mark.skipif(
    bool(ptrace.refused()[0]), reason="no single stepping here; `ptkit doctor` says what is missing"
)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench("step", 0, tmp_path)


def names(found: list[programs.Program]) -> list[str]:
    return [program.name for program in found]


@pytest.mark.parametrize("program", ALL, ids=names(ALL))
def test_they_end(program: programs.Program, tmp_path: Path) -> None:
    path = Bench("step", 0, tmp_path).write(program)
    assert subprocess.run([path], timeout=20, check=False).returncode == 0


def test_labels_become_displacements_and_addresses() -> None:
    code = Code(0x1000)
    code.label("begin")
    code.jump("end")
    code.address_of("end")
    code.label("end")
    content, labels = code.finish()
    assert labels == {"begin": 0x1000, "end": 0x100D}
    assert content == bytes.fromhex("e908000000" + "0d10000000000000")


@needs_steps
@pytest.mark.parametrize("program", ALL[:3], ids=names(ALL[:3]))
def test_two_runs_are_the_same(program: programs.Program, bench: Bench) -> None:
    assert np.array_equal(bench.step(program), bench.step(program))


@needs_steps
def test_seeds_make_other_programs(bench: Bench) -> None:
    one, other = (bench.executed(programs.branches(seed, 3000)) for seed in (1, 2))
    assert len(one) > 1500
    assert not np.array_equal(one[:1000], other[:1000])


@needs_steps
def test_what_is_decoded_is_what_was_stepped(bench: Bench) -> None:
    program = programs.branches(3, 3000)
    rows = bench.record(program).rows()
    assert expect_all(rows, bench.executed(program)).endswith("instructions")


@needs_steps
def test_filter_has_code_on_both_sides_of_its_range(bench: Bench) -> None:
    program = programs.filtered(5)
    executed = bench.executed(program)
    begin, end = program.labels["inside"], program.labels["behind"]
    assert np.isin([program.labels["before"], begin, end - 1, end], executed).all()


@needs_steps
def test_long_targets_are_far_apart(bench: Bench) -> None:
    executed = bench.executed(programs.long_targets(500))
    apart = np.abs(np.diff(executed.astype(np.int64))) > 1 << 32
    assert np.count_nonzero(apart) >= 499


def test_capabilities_have_words() -> None:
    assert all(len(row) == 6 for row in capabilities().words)
