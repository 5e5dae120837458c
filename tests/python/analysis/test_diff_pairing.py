"""Threads of a run, from streams of processors, too, and which of them are compared."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ptkit.analysis.diff.pairing import paired
from ptkit.analysis.diff.strands import Run, Strand, is_system, strands_of
from ptkit.info import ModuleInfo, StreamInfo

NOTHING: Any = SimpleNamespace()


def strand(tid: int, *, pid: int = 1, space: int = 1, program: str = "/bin/work") -> Strand:
    return Strand(NOTHING, pid, tid, space, "work", program)


def pairs(a: list[Strand], b: list[Strand], roles: dict[int, str]) -> list[tuple[int | None, int | None]]:
    found = paired(a, b, lambda one: roles.get(one.tid, ""))
    return [(pair.a and pair.a.tid, pair.b and pair.b.tid) for pair in found]


def test_threads_with_one_role_in_another_order() -> None:
    a, b = [strand(1), strand(2), strand(3), strand(4)], [strand(11), strand(12), strand(13), strand(14)]
    roles = {2: "reads", 3: "writes", 4: "reads", 12: "writes", 13: "reads", 14: "reads"}
    assert pairs(a, b, roles) == [(1, 11), (2, 13), (3, 12), (4, 14)]


def test_threads_of_one_run_alone() -> None:
    a, b = [strand(1), strand(2), strand(3)], [strand(11), strand(12)]
    assert pairs(a, b, {2: "reads", 3: "writes", 12: "writes"}) == [(1, 11), (2, None), (3, 12)]
    assert pairs(b, a, {2: "reads", 3: "writes", 12: "writes"}) == [(11, 1), (12, 3), (None, 2)]


def test_processes_by_program_and_order() -> None:
    a = [
        strand(1),
        strand(2, pid=2, space=2, program="/bin/sh"),
        strand(3, pid=3, space=3, program="/bin/sh"),
    ]
    b = [
        strand(11, pid=4, space=9, program="/bin/sh"),
        strand(12),
        strand(13, pid=5, space=8, program="/x/sh"),
    ]
    assert pairs(a, b, {}) == [(1, 12), (2, 11), (3, 13)]


def test_one_process_that_executes_another_program() -> None:
    a = [strand(1, program="/bin/env"), strand(1, space=2)]
    assert pairs(a, [strand(7)], {}) == [(1, None), (1, 7)]


def test_other_programs_are_compared_if_nothing_else_is_left() -> None:
    [found] = paired([strand(1)], [strand(2, program="/bin/other")], lambda one: "")
    assert found.a is not None
    assert found.b is not None
    assert "order of creation" in found.how


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/usr/lib/x86_64-linux-gnu/libc.so.6", True),
        ("/lib64/ld-linux-x86-64.so.2", True),
        ("[vdso]", True),
        ("C:\\Windows\\System32\\ntdll.dll", True),
        ("", True),
        ("/usr/bin/sort", False),
        ("/home/me/lib/libmine.so", False),
        ("C:\\work\\tool.exe", False),
    ],
)
def test_files_of_the_system(path: str, expected: bool) -> None:
    assert is_system(path) is expected


class Part(dict[str, Any]):
    """A part of a table, as far as it is read."""

    gaps = errors = None


def shared_rows(tids: list[int], spaces: list[int]) -> Part:
    size = len(tids)
    numbers = np.arange(size, dtype=np.uint64)
    known = np.ones(size, np.bool_)
    return Part(
        from_ip=numbers + 100,
        to_ip=numbers + 200,
        kind=np.zeros(size, np.uint8),
        flags=np.full(size, 3, np.uint8),
        instruction=numbers.astype(np.int64),
        stream=np.zeros(size, np.uint32),
        space=np.array(spaces, np.uint32),
        pid=np.ones(size, np.int32),
        tid=np.array(tids, np.int32),
        tid_known=known,
    )


def test_threads_that_share_a_stream() -> None:
    tids = [5, 5, 6, 6, 5, 7, 6, 6, 5] * 3
    spaces = [1 if tid < 7 else 2 for tid in tids]

    def parts(**query: Any) -> Iterator[Part]:
        assert query["stream"] == [0]
        for first in range(0, len(tids), 4):
            part = shared_rows(tids, spaces)
            yield Part({name: column[first : first + 4] for name, column in part.items()})

    info: Any = SimpleNamespace(
        streams=[StreamInfo("cpu 0", "packets", 1, 0, None, None, 0, 9, 0, 0)],
        threads=((1, 5, "one"), (1, 6, "two"), (1, 7, "three")),
        modules=(
            ModuleInfo("/lib/ld-linux-x86-64.so.2", "", 10, 20, 1),
            ModuleInfo("/srv/program", "", 100, 900, 1),
        ),
    )
    part: Any = SimpleNamespace(iter_branches=parts)
    strands, lost = strands_of(Run(part, part, info, NOTHING))
    assert lost == []
    assert [(one.tid, one.name, one.program) for one in strands] == [
        (5, "one", "/srv/program"),
        (6, "two", "/srv/program"),
        (7, "three", ""),
    ]
    for one in strands:
        for _ in range(2):  # a spool is read as often as it is asked for
            found = [number for arrays, _ in one.parts() for number in arrays["instruction"].tolist()]
            assert found == [number for number, tid in enumerate(tids) if tid == one.tid]
