"""Two runs: their threads are paired, and each pair is compared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ptkit import _core
from ptkit.analysis.coverage.files import CodeFile, other_builds, united
from ptkit.analysis.diff.compare import Result, compare
from ptkit.analysis.diff.keys import Keys
from ptkit.analysis.diff.named import Named, is_jit_list
from ptkit.analysis.diff.pairing import Pair, paired
from ptkit.analysis.diff.sequence import Loss, Sequence
from ptkit.analysis.diff.strands import Run, Strand, is_system, strands_of
from ptkit.support.text import module_name

__all__ = ["Compared", "Reader", "read_runs"]

_ROLE_ROWS = 1 << 13
_MOST_CODE = 1 << 16  # bytes of a run of code; a file as a whole has no bytes


class Reader:
    """Sequences of the threads of two runs, with keys that both share.

    Attributes
    ----------
    runs : tuple of Run
    files : tuple of CodeFile
        By the number that both share.
    builds : mapping of str to (CodeFile, CodeFile)
        Files of which both runs have other builds, by name.
    own : numpy.ndarray of bool
        By number: of the program, not of the system; one more for code in no file.
    names : tuple of Named
        Of each run.
    renamed : dict
        Names of programs of run b, and of those of run a that they are compared with.
    frames : str
        ``"native"``, or ``"python"``: calls of Python functions alone.
    """

    def __init__(self, a: Run, b: Run, *, frames: str = "native") -> None:
        self.frames = frames
        is_python = frames == "python"
        self.runs = a, b
        lists = [[CodeFile(*file) for file in run.info.files] for run in self.runs]
        self.files, numbers = united([*lists[0], *lists[1]])
        self.builds = other_builds(*lists)
        for file in self.files:
            if not file.build_id and file.name not in self.builds and _codes_differ(a, b, file):
                self.builds[file.name] = file, file
        differ = np.array([file.name in self.builds for file in self.files], np.bool_)
        own = [not is_system(file.path) for file in self.files]
        # Code in no file is the program's own where nothing but Python functions is looked at.
        self.own = np.array([*(one and not is_python for one in own), is_python])
        count = len(lists[0])
        # Two builds have one number, so that their branches compare but for RVAs.
        first = {file.name: number for number, file in reversed([*enumerate(self.files)])}
        numbers = np.array(
            [
                first[self.files[number].name] if self.files[number].name in self.builds else number
                for number in numbers.tolist()
            ],
            np.int32,
        )
        # Lists of JIT code are no files: one for each process.
        numbers[[is_jit_list(file.path) for file in (*lists[0], *lists[1])]] = -1
        self.names = tuple(Named(run.session, run.info.files) for run in self.runs)
        self._keys = (
            Keys(a.session, numbers[:count], differ, python_only=is_python),
            Keys(b.session, numbers[count:], differ, python_only=is_python),
        )
        self._with_kernel = False
        self.renamed: dict[str, str] = {}

    @property
    def own_names(self) -> set[str]:
        """Names of files of the program."""
        return {file.name for file in self.files if not is_system(file.path)}

    @property
    def has_two_builds(self) -> bool:
        """Both runs have other builds of the program, or of a file of its own."""
        return bool(self.renamed) or any(not is_system(one.path) for one, _ in self.builds.values())

    def rename(self, pairs: list[Pair]) -> None:
        """Take programs of other names that are compared for two builds of one."""
        keys = [
            {file.path: file.key for file in (CodeFile(*one) for one in run.info.files)} for run in self.runs
        ]
        for pair in pairs:
            if pair.a is None or pair.b is None or not (pair.a.program and pair.b.program):
                continue
            names = module_name(pair.a.program), module_name(pair.b.program)
            if names[0] != names[1] and keys[0].get(pair.a.program) != keys[1].get(pair.b.program):
                self.renamed[names[1]] = names[0]

    def is_own(self, file: int) -> bool:
        """Whether a file is of the program."""
        return bool(self.own[file])

    def with_rows(self, strands: tuple[list[Strand], ...]) -> list[list[Strand]]:
        """Threads that executed compared code: user code; that of the kernel if no thread has any other."""
        for with_kernel in (False, True):
            self._with_kernel = with_kernel
            found = [
                [one for one in some if self.sequence(one, side).fill(1)] for side, some in enumerate(strands)
            ]
            if any(found):
                break
        return found

    def sequence(self, strand: Strand, side: int) -> Sequence:
        """The branches of a thread of run 0 or 1."""
        return Sequence(strand.parts(), self._keys[side], self.own, with_kernel=self._with_kernel)

    def role(self, strand: Strand, side: int) -> str:
        """The first own function of a thread; empty: it is not known."""
        sequence = self.sequence(strand, side)
        count = min(sequence.fill(1), _ROLE_ROWS)
        if not count:
            return ""
        own = np.flatnonzero(self.own[sequence.ahead("file", count)])
        if not len(own):
            return ""
        row = sequence.row(int(own[0]))
        assert row is not None
        return self.names[side]([row.from_ip], [row.space])[0].function or ""


@dataclass(frozen=True)
class Compared:
    """What was found of two runs.

    Attributes
    ----------
    reader : Reader
    pairs : tuple of Pair
    results : tuple of Result
        Of each pair; of unpaired threads, without branches.
    lost : tuple of list of Loss
        Losses of each run that are of no known thread.
    by : str
        ``"branch"``, ``"function"`` or ``"line"``: what is compared.
    tids : tuple of int or None
        The one thread of each run that is compared.
    """

    reader: Reader
    pairs: tuple[Pair, ...]
    results: tuple[Result, ...]
    lost: tuple[list[Loss], list[Loss]]
    by: str
    tids: tuple[int | None, int | None] = (None, None)

    def queries(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Selection of the threads of each run."""
        some, other = ({} if tid is None else {"tid": tid} for tid in self.tids)
        return some, other

    def module_of(self, module: str | None) -> str | None:
        """Name in run a of a file of run b."""
        return self.reader.renamed.get(module or "", module)


def read_runs(
    a: Run,
    b: Run,
    *,
    limit: int,
    tid: int | None = None,
    by: str | None = None,
    frames: str = "native",
) -> Compared:
    """Compare two runs thread by thread; `tid`: that of either run alone.

    Other builds of the program are compared by function.
    """
    reader = Reader(a, b, frames=frames)
    read = strands_of(a), strands_of(b)
    strands = reader.with_rows((read[0][0], read[1][0]))
    sides = {id(one): side for side, some in enumerate(strands) for one in some}
    pairs = paired(strands[0], strands[1], lambda one: reader.role(one, sides[id(one)]))
    if tid is not None:
        pairs = [pair for pair in pairs if tid in {one.tid for one in (pair.a, pair.b) if one is not None}]
    reader.rename(pairs)
    by = by or ("function" if reader.has_two_builds else "branch")
    results = []
    for pair in pairs:
        if by != "branch" or pair.a is None or pair.b is None:
            results.append(Result())
            continue
        results.append(compare(reader.sequence(pair.a, 0), reader.sequence(pair.b, 1), limit=limit))
    tids = (None, None) if tid is None or not pairs else (_tid(pairs[0].a), _tid(pairs[0].b))
    return Compared(reader, tuple(pairs), tuple(results), (read[0][1], read[1][1]), by, tids)


def _tid(strand: Strand | None) -> int | None:
    return None if strand is None else strand.tid


def _codes_differ(a: Run, b: Run, file: CodeFile) -> bool:
    """Whether code of a file without a build-id, as far as both runs have it, differs."""
    bases = [
        [
            (one.base, one.space)
            for one in run.info.modules
            if not one.build_id and module_name(one.path) == file.name
        ]
        for run in (a, b)
    ]
    if not all(bases):
        return False
    (base, space), (other_base, other_space) = bases[0][0], bases[1][0]
    numbers = {number for number, one in enumerate(a.info.files) if CodeFile(*one).key == file.key}
    for address, size, number, of_space, *_ in _core.code_regions(a.session):
        if number not in numbers or of_space != space or size > _MOST_CODE:
            continue
        mine = a.session.read_code(address, size, space)
        theirs = b.session.read_code(address - base + other_base, size, other_space)
        both = min(len(mine), len(theirs))
        if mine[:both] != theirs[:both]:
            return True
    return False
