#!/usr/bin/env python3
"""Linux perf as a contestant: the branches that `perf script` writes as text, read into arrays.

    perf.py check FILE
    perf.py time FILE SECONDS [--null]

prints one JSON object, as the other contestants do. `--null`: the text goes to /dev/null, unread.
`--calls`: calls and returns instead, as `--call-ret-trace` shows them; the result is the call instructions.
The time is that of perf and of this script. perf looks for code in FILE.debug, where `ptkit export` puts it.
"""

from __future__ import annotations

import argparse
import binascii
import json
import os
import resource
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

import ptkit

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from contestant import TAKEN, Digests, Outcome, timed

BLOCK = 1 << 20
ERROR = b"instruction trace error"


BRANCHES = ("--itrace=be-o-l", "-F", "ip,addr")
CALLS = ("--call-ret-trace",)
CALL_SITES = (*CALLS, "-F", "ip,flags")


def words(path: str, output: Sequence[str]) -> list[str]:
    """Errors of branches other than losses, which are gaps in ptkit; no symbols, which take longer."""
    cache = ["--buildid-dir", f"{path}.debug"] if Path(f"{path}.debug").is_dir() else []
    return ["perf", *cache, "script", "--force", "-i", path, *output]


@contextmanager
def running(path: str, stdout: int, output: Sequence[str]) -> Iterator[IO[bytes] | None]:
    """The output of perf while it runs. A failure ends the contestant."""
    environment = {**os.environ, "PERF_CONFIG": os.devnull}
    with tempfile.TemporaryFile() as said:
        perf = subprocess.Popen(words(path, output), stdout=stdout, stderr=said, env=environment)
        with perf:
            yield perf.stdout
        if perf.returncode != 0:
            said.seek(0)
            sys.exit(f"{' '.join(words(path, output))}: {said.read().decode(errors='replace').strip()}")


def blocks(pipe: IO[bytes]) -> Iterator[bytes]:
    """Whole lines."""
    rest = b""
    while block := pipe.read(BLOCK):
        text = rest + block
        end = text.rfind(b"\n") + 1
        rest = text[end:]
        yield text[:end]


def rows_of(text: bytes) -> tuple[NDArray[Any], int]:
    """From and to of each branch, and the number of errors.

    A line is ``" %16x => %16x"``: blanks are zeros then, and all digits are read at once.
    """
    errors = text.count(ERROR)
    if errors:
        text = b"".join(line for line in text.splitlines(True) if ERROR not in line)
    if not text:
        return np.empty((0, 2), ">u8"), errors
    digits = text[1:-1].replace(b"\n ", b"").replace(b" => ", b"").replace(b" ", b"0")
    rows = np.frombuffer(binascii.unhexlify(digits), ">u8").reshape(-1, 2)
    return rows[rows[:, 0] != 0], errors  # perf has a branch from 0 where tracing begins


def read(path: str, digests: Digests | None = None) -> Outcome:
    outcome = Outcome()
    with running(path, subprocess.PIPE, BRANCHES) as pipe:
        for text in blocks(pipe) if pipe else ():
            rows, errors = rows_of(text)
            outcome.add(len(rows), errors, rows[-1:, 0])
            if digests is not None:
                digests.update([rows[:, 0].astype("<u8"), rows[:, 1].astype("<u8")])
    return outcome


def read_calls(path: str, digests: Digests | None = None) -> Outcome:
    sites: list[int] = []
    with running(path, subprocess.PIPE, CALL_SITES) as pipe:
        for text in blocks(pipe) if pipe else ():
            sites += [int(line.split()[-1], 16) for line in text.splitlines() if b" call " in line]
    array = np.array(sites, np.uint64)
    if digests is not None:
        digests.update([np.sort(array)])
    return Outcome(len(array), 0, int(array.sum(dtype=np.uint64)))


def discard(path: str, output: Sequence[str]) -> Outcome:
    with running(path, subprocess.DEVNULL, output):
        return Outcome()


def cpu_seconds() -> float:
    used = [resource.getrusage(process) for process in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("action", choices=("check", "time"))
    parser.add_argument("file")
    parser.add_argument("seconds", nargs="?", type=float, default=0.0)
    parser.add_argument("--null", action="store_true")
    parser.add_argument("--calls", action="store_true")
    arguments = parser.parse_args()
    answer: dict[str, Any] = {}
    if arguments.action == "check":
        digests = Digests(1 if arguments.calls else len(TAKEN))
        outcome = (read_calls if arguments.calls else read)(arguments.file, digests)
        outcome.digest = digests.text()
    else:

        def run() -> Outcome:
            if arguments.null:
                return discard(arguments.file, CALLS if arguments.calls else BRANCHES)
            return (read_calls if arguments.calls else read)(arguments.file)

        rounds, outcome = timed(run, arguments.seconds, cpu_seconds)
        warnings.simplefilter("ignore", ptkit.PtkitWarning)
        answer = {"bytes": ptkit.open(arguments.file).info.bytes, "rounds": rounds}
    print(json.dumps({**vars(outcome), **answer}))


if __name__ == "__main__":
    main()
