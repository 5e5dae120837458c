"""Readers of profiles for compilers: the texts, as they are documented, and the programs that read them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest


def _found(*names: str) -> str | None:
    return next((path for name in names if (path := shutil.which(name))), None)


PROFGEN = _found("llvm-profgen", "llvm-profgen-19", "llvm-profgen-14")
PROFDATA = _found("llvm-profdata", "llvm-profdata-19", "llvm-profdata-14")
# Under the name perf2bolt-19 the program takes itself for llvm-bolt.
PERF2BOLT = _found("perf2bolt", "/usr/lib/llvm-19/bin/perf2bolt")
LLVM_BOLT = _found("llvm-bolt", "llvm-bolt-19")
CREATE_GCOV = _found("create_gcov")
CREATE_LLVM_PROF = _found("create_llvm_prof")
CLANG = _found("clang")

needs_profgen = pytest.mark.skipif(
    PROFGEN is None or PROFDATA is None, reason="llvm-profgen is not installed (package llvm)"
)
needs_bolt = pytest.mark.skipif(
    PERF2BOLT is None or LLVM_BOLT is None, reason="perf2bolt is not installed (package bolt-19)"
)
needs_autofdo = pytest.mark.skipif(
    CREATE_GCOV is None or CREATE_LLVM_PROF is None, reason="create_gcov is not installed (package autofdo)"
)

Range = tuple[int, int]
#: An address of another file is None.
Branch = tuple[int | None, int | None]


@dataclass
class Profile:
    """Counts of a profile: executions of ranges of code, and of taken branches."""

    ranges: Counter[Range] = field(default_factory=Counter)
    branches: Counter[Branch] = field(default_factory=Counter)
    mispredicted: Counter[Branch] = field(default_factory=Counter)
    after_returns: Counter[Range] = field(default_factory=Counter)  # or after branches of other files

    def shifted(self, base: int) -> Profile:
        """The same with other addresses."""
        moved = Profile()
        for name in ("ranges", "branches", "mispredicted", "after_returns"):
            counts = getattr(self, name)
            getattr(moved, name).update(
                {
                    (a if a is None else a + base, b if b is None else b + base): n
                    for (a, b), n in counts.items()
                }
            )
        return moved


def _section(lines: list[str], separator: str) -> Counter[Range]:
    """A number of lines, and these lines; they are taken from `lines`."""
    size = int(lines.pop(0))
    counts: Counter[Range] = Counter()
    for line in lines[:size]:
        found = re.fullmatch(rf"([0-9a-f]+){re.escape(separator)}([0-9a-f]+):([0-9]+)", line)
        assert found is not None, line
        key = int(found[1], 16), int(found[2], 16)
        assert key not in counts
        counts[key] = int(found[3])
    del lines[:size]
    return counts


def read_autofdo(path: Path) -> Profile:
    """Ranges, no addresses, and branches."""
    lines = path.read_text("ascii").splitlines()
    profile = Profile(_section(lines, "-"))
    assert lines.pop(0) == "0"
    profile.branches.update(_section(lines, "->"))
    assert not lines
    return profile


def read_llvm(path: Path) -> Profile:
    """Ranges and branches; the address 1 is that of other code."""
    lines = path.read_text("ascii").splitlines()
    profile = Profile(_section(lines, "-"))
    for (origin, target), count in _section(lines, "->").items():
        profile.branches[None if origin == 1 else origin, target] += count
    assert not lines
    return profile


def _address(text: str) -> int | None:
    return None if text == "X:0" else int(text, 16)


def read_bolt(path: Path) -> Profile:
    """Lines B, F, f, T and R; a trace T or R is a branch and the code that follows it."""
    profile = Profile()
    seen = set()
    for line in path.read_text("ascii").splitlines():
        kind, *words = line.split(" ")
        addresses = [_address(word) for word in words[: {"T": 3, "R": 3}.get(kind, 2)]]
        counts = [int(word) for word in words[len(addresses) :]]
        assert (kind, *addresses) not in seen
        seen.add((kind, *addresses))
        begin, end = addresses[-2:]
        if kind == "B":
            assert len(counts) == 2
            profile.branches[begin, end] += counts[0]
            profile.mispredicted[begin, end] += counts[1]
            continue
        assert len(counts) == 1
        assert begin is not None
        assert end is not None
        profile.ranges[begin, end] += counts[0]
        if kind in "TR":
            profile.branches[addresses[0], begin] += counts[0]
        else:
            assert kind in "Ff"
        if kind in "fR" or (kind == "T" and addresses[0] is None):
            profile.after_returns[begin, end] += counts[0]
    return profile


def executions(profile: Profile, address: int) -> int:
    """How often an address was executed."""
    return sum(count for (begin, end), count in profile.ranges.items() if begin <= address <= end)


def calls_of(profile: Profile, address: int) -> int:
    """How often taken branches led to an address."""
    return sum(count for (_, target), count in profile.branches.items() if target == address)


def run(*command: str | Path) -> str:
    """What a program prints; it must not fail."""
    words = [str(word) for word in command]
    environment = {**os.environ, "GLOG_logtostderr": "1"}  # else AutoFDO leaves logs in the temporary folder
    done = subprocess.run(words, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, f"{' '.join(map(str, command))}: {done.stderr[-2000:]}"
    return done.stdout + done.stderr


def perf2bolt(program: Path, profile: Path, out: Path, *options: str) -> tuple[int, int, int]:
    """Run it: lines that it read, executions that do not fit the program, and those outside of it."""
    assert PERF2BOLT is not None
    said = run(PERF2BOLT, program, "--pa", "-p", profile, "-o", out, *options)
    numbers = []
    for text in (
        r"PERF2BOLT: read (\d+) aggregated LBR entries",
        r"traces mismatching disassembled function contents: (\d+)",
        r"[Oo]ut of range traces involving unknown regions: (\d+)",
    ):
        found = re.search(text, said)
        assert found is not None, said
        numbers.append(int(found[1]))
    return numbers[0], numbers[1], numbers[2]


def mismatching(program: Path, lines: list[str], folder: Path, *options: str) -> list[str]:
    """The lines that perf2bolt finds not to fit the program, each looked for by halving."""
    if not lines:
        return []
    probe = folder / "probe"
    probe.write_text("".join(f"{line}\n" for line in lines))
    if perf2bolt(program, probe, folder / "probe.fdata", *options)[1] == 0:
        return []
    if len(lines) == 1:
        return lines
    middle = len(lines) // 2
    return [
        line
        for half in (lines[:middle], lines[middle:])
        for line in mismatching(program, half, folder, *options)
    ]


def gcc_with_autofdo(profile: Path, folder: Path) -> str | None:
    """A gcc that reads the files of create_gcov; None: there is none."""
    source = folder / "empty.c"
    source.write_text("int nothing(void) { return 0; }\n")
    for name in ("gcc", "gcc-11", "gcc-10", "gcc-9"):
        if (gcc := shutil.which(name)) is None:
            continue
        command = [gcc, "-O2", f"-fauto-profile={profile}", "-S", "-o", "/dev/null", str(source)]
        if subprocess.run(command, capture_output=True).returncode == 0:
            return gcc
    return None
