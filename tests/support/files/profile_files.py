"""Readers of profiles: folded stacks, pprof and Callgrind, and what their own programs print of them."""

from __future__ import annotations

import gzip
import os
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ANNOTATE = shutil.which("callgrind_annotate")
GO = shutil.which("go")
needs_annotate = pytest.mark.skipif(ANNOTATE is None, reason="valgrind is not installed")
needs_go = pytest.mark.skipif(GO is None, reason="go is not installed")


def read_folded(path: Path) -> dict[tuple[str, ...], int]:
    """Numbers by stack, the outermost function first; each stack has one line."""
    found: dict[tuple[str, ...], int] = {}
    for line in path.read_text("utf-8").split("\n")[:-1]:
        stack, _, number = line.rpartition(" ")
        key = tuple(stack.split(";"))
        assert key not in found
        found[key] = int(number)
    return found


# ---- pprof: profile.proto in https://github.com/google/pprof


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if data[at - 1] < 0x80:
            return value, at


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        value: int | bytes
        if key & 7 == 0:
            value, at = _varint(data, at)
        else:
            assert key & 7 == 2
            size, at = _varint(data, at)
            value = data[at : at + size]
            assert len(value) == size
            at += size
        yield key >> 3, value


def _message(data: bytes) -> dict[int, int]:
    """Integers of a message that has each field once."""
    found: dict[int, int] = {}
    for number, value in _fields(data):
        assert isinstance(value, int)
        assert number not in found
        found[number] = value
    return found


def _packed(data: bytes) -> list[int]:
    found, at = [], 0
    while at < len(data):
        value, at = _varint(data, at)
        found.append(value)
    return found


@dataclass
class Pprof:
    """A profile; numbers of functions and so on are replaced by what they stand for."""

    types: list[tuple[str, str]] = field(default_factory=list)
    #: Path, build-id, begin and end of each.
    mappings: dict[int, tuple[str, str, int, int]] = field(default_factory=dict)
    #: Name, system name, file and line.
    functions: dict[int, tuple[str, str, str, int]] = field(default_factory=dict)
    #: Mapping, address, function and line.
    locations: dict[int, tuple[int, int, int, int]] = field(default_factory=dict)
    #: Locations, the innermost one first, and values.
    samples: list[tuple[list[int], list[int]]] = field(default_factory=list)
    strings: list[str] = field(default_factory=list)

    def names(self, sample: int) -> list[str]:
        """System names of the functions of a sample, the innermost one first."""
        return [self.functions[self.locations[one][2]][1] for one in self.samples[sample][0]]

    def sums(self, type: str) -> tuple[Counter[int], Counter[int]]:
        """Values by function: of samples in it, and of those in it and what it called."""
        index = [name for name, _ in self.types].index(type)
        flat: Counter[int] = Counter()
        whole: Counter[int] = Counter()
        for locations, values in self.samples:
            functions = [self.locations[one][2] for one in locations]
            flat[functions[0]] += values[index]
            for one in set(functions):
                whole[one] += values[index]
        return flat, whole


def read_pprof(path: Path) -> Pprof:
    """Read a profile, and check that its parts refer to each other."""
    fields = list(_fields(gzip.decompress(path.read_bytes())))
    found = Pprof()
    found.strings = [bytes(value).decode("utf-8") for number, value in fields if number == 6]  # type: ignore[arg-type]
    text = found.strings.__getitem__
    assert text(0) == ""
    assert len(set(found.strings)) == len(found.strings)
    for number, value in fields:
        if number in (13, 14):
            assert isinstance(value, int)
            text(value)
            continue
        assert isinstance(value, bytes)
        if number == 1:
            one = _message(value)
            found.types.append((text(one[1]), text(one[2])))
        elif number == 2:
            parts = dict(_fields(value))
            assert parts.keys() == {1, 2}
            found.samples.append((_packed(parts[1]), _packed(parts[2])))  # type: ignore[arg-type]
        elif number == 3:
            one = _message(value)
            assert one[7] == one[8] == one[9] == 1
            found.mappings[one[1]] = (text(one.get(5, 0)), text(one.get(6, 0)), one.get(2, 0), one[3])
        elif number == 4:
            parts = dict(_fields(value))
            line = parts.pop(4)
            assert isinstance(line, bytes)
            at = _message(line)
            location = {key: int(one) for key, one in parts.items()}  # type: ignore[arg-type]
            found.locations[location[1]] = (location.get(2, 0), location.get(3, 0), at[1], at.get(2, 0))
        elif number == 5:
            one = _message(value)
            texts = [text(one.get(key, 0)) for key in (2, 3, 4)]
            found.functions[one[1]] = (texts[0], texts[1], texts[2], one.get(5, 0))
    assert {one[0] for one in found.locations.values()} <= {0, *found.mappings}
    assert {one[2] for one in found.locations.values()} <= found.functions.keys()
    for locations, values in found.samples:
        assert set(locations) <= found.locations.keys()
        assert len(values) == len(found.types)
    return found


def go_top(path: Path, type: str) -> dict[str, tuple[int, int]]:
    """What ``go tool pprof -top`` prints: by function, its own sum and that with what it called."""
    assert GO is not None
    command = [GO, "tool", "pprof", "-top", f"-sample_index={type}", "-nodecount=1000000"]
    command += ["-nodefraction=0", "-edgefraction=0", "-unit=count", str(path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    head, _, rows = done.stdout.partition("cum%\n")
    assert f"Type: {type}\n" in head
    found = {}
    for line in rows.splitlines():
        flat, _, _, whole, _, name = line.split(None, 5)
        found[name] = int(flat), int(whole)
    return found


# ---- Callgrind: the format's page in Valgrind's manual


@dataclass
class Callgrind:
    """A profile. Functions are (file, name)."""

    head: dict[str, str] = field(default_factory=dict)
    own: Counter[tuple[str, str]] = field(default_factory=Counter)
    #: Costs by the source file and line at which they stand.
    lines: Counter[tuple[str, int]] = field(default_factory=Counter)
    #: Costs by object and address.
    addresses: Counter[tuple[str, int]] = field(default_factory=Counter)
    #: Caller, address of the call, and function: calls and cost.
    calls: dict[tuple[tuple[str, str], int, tuple[str, str]], tuple[int, int]] = field(default_factory=dict)
    objects: dict[tuple[str, str], str] = field(default_factory=dict)

    def called(self) -> tuple[Counter[tuple[str, str]], Counter[tuple[str, str]]]:
        """Calls of each function, and their costs."""
        counts: Counter[tuple[str, str]] = Counter()
        costs: Counter[tuple[str, str]] = Counter()
        for (_, _, callee), (count, cost) in self.calls.items():
            counts[callee] += count
            costs[callee] += cost
        return counts, costs


_WORD = re.compile(r"\((\d+)\)(?: (.*))?")


def read_callgrind(path: Path) -> Callgrind:
    """Read a profile of lines with an address, a line and one cost."""
    found = Callgrind()
    words: dict[str, dict[str, str]] = {"fl": {}, "fn": {}, "ob": {}}
    kinds = {"fi": "fl", "fe": "fl", "cfi": "fl", "cfn": "fn", "cob": "ob"}
    at: dict[str, str] = {}
    function = ("", "")
    count = None
    for line in path.read_text("utf-8").split("\n")[1:-1]:
        key, has_value, value = line.partition("=")
        if not line:
            continue
        if key == "calls":
            assert has_value
            count = int(value.split()[0])
        elif has_value:
            kind = kinds.get(key, key)
            match = _WORD.fullmatch(value)
            assert match is not None, line
            if match[2] is not None:
                assert match[1] not in words[kind]
                words[kind][match[1]] = match[2]
            at[key] = words[kind][match[1]]
            if key == "fl":
                at["fi"] = at[key]
            if key == "fn":
                function = at["fl"], at["fn"]
                assert found.objects.setdefault(function, at["ob"]) == at["ob"]
        elif ":" in line:
            name, _, text = line.partition(": ")
            found.head[name] = text
        else:
            address, row, cost = line.split()
            if count is None:
                found.own[function] += int(cost)
                found.lines[at["fi"], int(row)] += int(cost)
                found.addresses[at["ob"], int(address, 16)] += int(cost)
                continue
            callee = at["cfi"], at["cfn"]
            assert found.objects.setdefault(callee, at["cob"]) == at["cob"]
            call = function, int(address, 16), callee
            before = found.calls.get(call, (0, 0))
            found.calls[call] = before[0] + count, before[1] + int(cost)
            count = None
    return found


_ROW = re.compile(r" *([\d,]+) \( *[\d.]+%\)  (.*)")


def annotated(path: Path, *, inclusive: bool) -> tuple[int, dict[tuple[str, str], int]]:
    """What ``callgrind_annotate`` prints: the total, and costs by file and function."""
    objects = set(read_callgrind(path).objects.values())
    assert ANNOTATE is not None
    command = [
        ANNOTATE,
        f"--inclusive={'yes' if inclusive else 'no'}",
        "--threshold=100",
        "--auto=no",
        str(path),
    ]
    # In another folder: it takes away the current one from some names of files only.
    done = subprocess.run(command, capture_output=True, cwd="/", env={**os.environ, "LC_ALL": "C"})
    output, errors = done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")
    assert done.returncode == 0, errors
    assert "WARNING" not in errors, errors
    total, found = 0, {}
    for line in output.splitlines():
        if match := _ROW.fullmatch(line):
            cost = int(match[1].replace(",", ""))
            if match[2] == "PROGRAM TOTALS":
                total = cost
                continue
            # Names may end with brackets, too.
            ends = [f" [{one}]" for one in objects if match[2].endswith(f" [{one}]")]
            file, _, name = match[2].removesuffix(max(ends, key=len, default="")).partition(":")
            found[file, name] = cost
    return total, found
