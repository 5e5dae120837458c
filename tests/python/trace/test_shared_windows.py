"""Windows of time together with threads, where several threads share the stream of a processor."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_elf import elf

import ptkit
from ptkit.cli import main

# again: call outer; jmp again.  outer: call inner; nop; ret.  inner: nop; nop; ret.
AGAIN, OUTER, INNER = 0x401000, 0x501000, 0x601000
CODE = {
    "again": (AGAIN, b"\xe8" + (OUTER - AGAIN - 5).to_bytes(4, "little") + b"\xeb\xf9"),
    "outer": (OUTER, b"\xe8" + (INNER - OUTER - 5).to_bytes(4, "little") + b"\x90\xc3"),
    "inner": (INNER, b"\x90\x90\xc3"),
}
# Addresses in the order in which they are executed, and whether a TIP leads to them.
PATH = [
    (AGAIN, False),
    (OUTER, False),
    (INNER, False),
    (INNER + 1, False),
    (INNER + 2, False),
    (OUTER + 5, True),
    (OUTER + 6, False),
    (AGAIN + 5, True),
]
THREADS = [[(1, 11), (2, 22)], [(1, 12), (3, 33), (1, 13)]]  # of each processor
SLICES = (7, 5, 11, 3, 8, 1, 13, 6, 2, 9, 4, 10)  # instructions until the next thread is switched in
FIRST, STEP = 1000, 20  # TSC ticks
COLUMNS = [
    *("id", "parent", "entry_symbol", "tid", "stream", "tsc", "end_tsc", "instructions"),
    *("self_instructions", "instruction", "end_instruction", "flags"),
]
SPANS = ("stream", "instruction", "end_instruction")
EDGE = ("from_ip", "to_ip", "kind")


def stream(packets: Any, threads: list[tuple[int, int]], begin: int) -> tuple[bytes, list[Any]]:
    """Threads that take turns: each is interrupted after some instructions, and goes on there."""
    data = packets.PSB + packets.tsc(begin) + packets.MODE_64 + packets.PSBEND
    switches: list[tuple[int, int | None, int | None, int]] = []
    positions = [0] * len(threads)
    now = begin
    for number, length in enumerate(SLICES):
        turn = number % len(threads)
        switches.append((now, *threads[turn], 0))
        now += STEP
        data += packets.tsc(now) + packets.pge(PATH[positions[turn]][0])
        for _ in range(length):
            positions[turn] = (positions[turn] + 1) % len(PATH)
            ip, is_target = PATH[positions[turn]]
            if is_target:
                now += STEP
                data += packets.tsc(now) + packets.tip(ip)
        now += STEP
        data += packets.tsc(now) + packets.fup(PATH[positions[turn]][0]) + packets.TIP_PGD
        now += STEP
    switches.append((now, None, None, 0))
    return data, switches


@pytest.fixture
def shared(packets: Any, tmp_path: Path) -> ptkit.Trace:
    bundle = ptkit._core.Bundle()
    for name, (address, code) in CODE.items():
        (tmp_path / name).write_bytes(elf(code, address, name))
        bundle.add_image(str(tmp_path / name))
    for cpu, threads in enumerate(THREADS):
        data, switches = stream(packets, threads, FIRST + 7 * cpu)
        bundle.add_stream(data, cpu=cpu, switches=switches)
    trace = ptkit.Trace(bundle, ptkit.decode.Settings())
    assert len(trace.errors) == 0
    assert len(trace.instructions()) == len(THREADS) * sum(SLICES)
    return trace


class Truth:
    """What whole calls, and rows of all instructions and branches, say of one thread in a window."""

    def __init__(self, trace: ptkit.Trace, tid: int, begin: int, end: int) -> None:
        rows = trace.instructions(columns=["tid", "tsc", "stream"])
        of_thread = np.asarray(rows["tid"]) == tid
        self.is_inside = of_thread & (rows["tsc"] >= begin) & (rows["tsc"] < end)
        first = {one: int(np.argmax(rows["stream"] == one)) for one in range(len(THREADS))}
        whole = trace.calls(columns=COLUMNS)
        whole = whole[whole["tid"] == tid]
        # Where a thread is selected, its frames alone have numbers.
        numbers = {one: number for number, one in enumerate(whole["id"].tolist())}
        self.names = dict(enumerate(whole.named("entry_symbol")))
        self.callers = dict(enumerate(map(numbers.get, whole.named("parent"))))
        self.instructions: dict[int, int] = {}
        self.begins: set[int] = set()
        spans = zip(*(whole[one].tolist() for one in SPANS), strict=True)
        for number, (stream, start, stop) in enumerate(spans):
            at = slice(first[stream] + start, first[stream] + stop)
            if count := int(self.is_inside[at].sum()):
                self.instructions[number] = count
                if self.is_inside[at][of_thread[at]][0]:  # other threads may come first
                    self.begins.add(number)
        self.own = dict(self.instructions)
        for number, count in self.instructions.items():
            if self.callers[number] is not None:
                self.own[self.callers[number]] -= count
        taken = trace.branches(columns=["from_ip", "to_ip", "kind", "tid", "tsc", "taken"])
        chosen = taken[(taken["tid"] == tid) & (taken["tsc"] >= begin) & (taken["tsc"] < end)]
        edges = chosen[chosen["kind"] != "ASYNC"]  # interrupts are no edges
        self.edges = Counter(zip(*(edges.named(one) for one in EDGE), strict=True))

    def chain(self, number: int | None) -> tuple[str, ...]:
        return () if number is None else (*self.chain(self.callers[number]), self.names[number])

    def sums(self, key: Any) -> dict[Any, tuple[int, int]]:
        """Calls that begin, and own instructions, by name or chain."""
        found: dict[Any, tuple[int, int]] = {}
        for number, own in self.own.items():
            count, instructions = found.get(key(number), (0, 0))
            found[key(number)] = (count + (number in self.begins), instructions + own)
        return {key: sums for key, sums in found.items() if sums != (0, 0)}


def windows(trace: ptkit.Trace) -> Iterator[tuple[int, int]]:
    """From and to moments within slices, at their ends, and between them."""
    moments = range(trace.info.first_tsc, trace.info.last_tsc + 40, 130)
    for number, begin in enumerate(moments):
        for end in moments[number + 1 : number + 5 : 2]:
            yield begin, end


def by_key(sums: Any, keys: Any = None) -> dict[Any, tuple[int, int]]:
    keys = sums.named("function") if keys is None else keys
    rows = zip(sums["count"].tolist(), sums["self_instructions"].tolist(), strict=True)
    return {key: row for key, row in zip(keys, rows, strict=True) if row != (0, 0)}


def chains(tree: Any) -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = []
    for name, parent in zip(tree.named("function"), tree.named("parent"), strict=True):
        found.append((*(found[parent] if parent is not None else ()), name))
    return found


@pytest.mark.parametrize("tid", [11, 22, 12, 33, 13])
def test_threads_of_shared_streams(shared: ptkit.Trace, tid: int) -> None:
    seen = Counter[str]()
    for begin, end in windows(shared):
        truth = Truth(shared, tid, begin, end)
        for view, more in ((shared.between(begin, end), {}), (shared, {"time": (begin, end)})):
            calls = view.calls(tid=tid, columns=COLUMNS, **more)
            found = dict(zip(calls["id"].tolist(), calls["instructions"].tolist(), strict=True))
            assert {one: count for one, count in found.items() if count} == truth.instructions
            own = zip(calls["id"].tolist(), calls["self_instructions"].tolist(), strict=True)
            assert {one: count for one, count in own if found[one]} == truth.own
            assert set(calls["id"][~calls["begins_before"]].tolist()) == truth.begins
            # Others were open, and executed nothing in the window.
            assert all(calls["begins_before"] | (calls["instructions"] > 0))
            assert by_key(view.functions(tid=tid, **more)) == truth.sums(truth.names.__getitem__)
            tree = view.call_tree(tid=tid, **more)
            assert by_key(tree, chains(tree)) == truth.sums(truth.chain)
            edges = view.edges(tid=tid, **more)
            ends = zip(*(edges.named(one) for one in EDGE), strict=True)
            counts = zip(ends, edges["count"].tolist(), strict=True)
            assert dict(counts) == truth.edges
            assert len(view.instructions(tid=tid, **more)) == truth.is_inside.sum()
        seen["without rows"] += not truth.instructions
        seen["begun before"] += len(truth.instructions) > len(truth.begins)
        seen["begun inside"] += len(truth.begins) > 0
    own = shared.calls(tid=tid)["self_instructions"].sum()
    assert own == len(shared.instructions(tid=tid))
    assert all(seen[one] for one in ("without rows", "begun before", "begun inside"))


def test_the_command_line_selects_the_same(
    shared: ptkit.Trace, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "shared.ptk"
    shared.save(path)
    begin, end = FIRST + 300, FIRST + 700
    truth = Truth(shared, 13, begin, end)

    def rows(*words: str) -> list[dict[str, Any]]:
        verb, *more = words
        assert main([verb, str(path), "--tid", "13", "--time", f"{begin}-{end}", "--json", *more]) == 0
        return [json.loads(line) for line in capsys.readouterr().out.splitlines()[1:]]

    for words in (("functions", "--all"), ("tree", "--all")):
        counts = Counter[str]()
        for one in rows(*words):
            counts[one["function"]] += one["self_instructions"]
        sums = truth.sums(truth.names.__getitem__)
        assert +counts == +Counter({name: own for name, (_, own) in sums.items()})
    calls = {one["id"]: one["instructions"] for one in rows("calls", "--all")}
    assert +Counter(calls) == Counter(truth.instructions)
    edges = Counter({(one["from_ip"], one["to_ip"], one["kind"]): one["count"] for one in rows("edges")})
    assert edges == {(hex(a), hex(b), kind): count for (a, b, kind), count in truth.edges.items()}
