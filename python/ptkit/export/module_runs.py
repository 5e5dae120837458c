"""Runs of the code of one program or library, at the addresses that it was linked for."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ptkit import _core
from ptkit.decode import OpenTrace, Query
from ptkit.errors import ConfigError, PtkitError
from ptkit.support.text import counted, last_part, one_line

if TYPE_CHECKING:
    from ptkit.decode import Runs
    from ptkit.info import TraceInfo

__all__ = ["ModuleRuns", "RunTrace", "in_stubs", "module_runs"]

_REFUSED = ("columns", "order", "offset", "kind", "taken")
_LISTED = 5  # files in a message
_LOWEST_PIE = 1 << 32  # address
_JUMPS_TO_LINKER = 2  # from a stub in .plt.sec to one in .plt, and from there to the first one
_PE_SUFFIXES = (".exe", ".dll", ".sys")

_Numbers = NDArray[np.uint64]


class RunTrace(Protocol):
    """A trace, or a part of one, as far as exporters of runs use it."""

    @property
    def info(self) -> TraceInfo:
        """Files and facts."""

    @property
    def opened(self) -> OpenTrace:
        """The bundle, the session and the settings."""

    @property
    def open_parts(self) -> Any:
        """Where files lie in memory."""

    def _runs(self, query: Query) -> Runs: ...


@dataclass(frozen=True)
class ModuleRuns:
    """Runs and branches of one file, at the addresses that it was linked for.

    Attributes
    ----------
    origin : numpy.ndarray of uint64, shape (runs,)
        Address of the taken branch that led to the run; see `has_origin`.
    has_origin : numpy.ndarray of bool, shape (runs,)
        A near branch led to the run.
    is_own : numpy.ndarray of bool, shape (runs,)
        That branch is in the file.
    kind : numpy.ndarray of uint8, shape (runs,)
        `ptkit.BranchKind` of that branch.
    begin, end : numpy.ndarray of uint64, shape (runs,)
        Addresses of the first and of the last instruction; `begin` is 0 if it is in another file or unknown.
    has_begin : numpy.ndarray of bool, shape (runs,)
        `begin` is in the file.
    has_run : numpy.ndarray of bool, shape (runs,)
        Instructions were executed from `begin` to `end`. Else only the branch is known.
    instructions, count, mispredicted, predictions : numpy.ndarray of uint64, shape (runs,)
        As `ptkit.decode.Runs` has them.
    path, build_id : str
        The file.
    file : int
        Its number.
    linked : int
        The address that it was linked for: RVAs count from it.
    notes : tuple of str
        Sentences: what is left out.
    """

    origin: _Numbers
    has_origin: NDArray[np.bool_]
    is_own: NDArray[np.bool_]
    kind: NDArray[np.uint8]
    begin: _Numbers
    end: _Numbers
    has_begin: NDArray[np.bool_]
    has_run: NDArray[np.bool_]
    instructions: _Numbers
    count: _Numbers
    mispredicted: _Numbers
    predictions: _Numbers
    path: str
    build_id: str
    file: int
    linked: int
    notes: tuple[str, ...]


def module_runs(trace: RunTrace, *, build_id: str | None = None, **query: Any) -> ModuleRuns:
    """Read the runs of a trace, and choose those of one file.

    Parameters
    ----------
    trace : Trace
    build_id : str, optional
        Begin of the build-id of the file.
    **query
        As for `ptkit.Trace.calls`. ``module`` chooses the file; by default it is the one that was executed,
        or the program that was recorded.

    Raises
    ------
    ConfigError
        If several files may be meant, or there is none; or the query chooses what runs do not have.
    """
    for name in _REFUSED:
        if query.get(name) is not None:
            raise ConfigError(f"{name} does not select runs of code: leave it out")
    modules = query.pop("module", None)
    wanted = None if modules is None else _files_at(trace, modules)
    runs = trace._runs(Query(**query))  # type: ignore[typeddict-item]
    columns = runs.columns
    executed = _executed(columns)
    named = set(executed) if wanted is None else wanted & set(executed)
    file, notes = _chosen(trace, executed, named, build_id, is_named=wanted is not None or bool(build_id))
    linked, more = _linked_address(trace, file)
    notes += [*more, *_left_out(trace, runs, executed, file)]
    own = (columns["file"] == file) & (columns["flags"] & _core.RUN_BEGIN != 0)
    is_own = (columns["from_file"] == file) & (columns["flags"] & _core.RUN_FROM != 0)
    rows = np.flatnonzero(own | is_own)
    at = {name: column[rows] for name, column in columns.items()}
    own, is_own = own[rows], is_own[rows]
    is_near = np.isin(at["kind"], _near_kinds())
    base = np.uint64(linked)
    has_run = own & (at["instructions"] != 0)
    path, found_id = trace.info.files[file]
    return ModuleRuns(
        np.where(is_own, at["from"] + base, np.uint64(0)),
        (at["flags"] & _core.RUN_FROM != 0) & is_near,
        is_own & is_near,
        at["kind"],
        np.where(own, at["begin"] + base, np.uint64(0)),
        np.where(has_run, at["end"] + base, np.uint64(0)),
        own,
        has_run,
        np.where(has_run, at["instructions"], np.uint64(0)),
        at["count"],
        at["mispredicted"],
        at["predictions"],
        path,
        found_id,
        file,
        linked,
        tuple(notes),
    )


def in_stubs(trace: RunTrace, runs: ModuleRuns) -> NDArray[np.bool_]:
    """Which runs begin in PLT stubs, or where these jump to and no symbol begins: the call of the linker."""
    session, first = trace.opened.session, _first_files(trace)
    stubs = [(ip, size, space) for _, ip, size, _, space in _core.match_symbols(session, "*@plt")]
    ips = np.array([ip for ip, _, _ in stubs], np.uint64)
    spaces = np.array([space for _, _, space in stubs], np.uint32)
    files, rvas = _core.name_files(session, ips, spaces, None, None, True, True)
    own = [i for i, file in enumerate(files.tolist()) if 0 <= file < len(first) and first[file] == runs.file]
    spans = np.array([(int(rvas[i]), stubs[i][1]) for i in own], np.uint64).reshape(-1, 2)
    spans[:, 0] += np.uint64(runs.linked)
    is_stub = runs.has_run & _in_spans(spans, runs.begin)
    if not is_stub.any():
        return is_stub
    loaded = ips[own[0]] - rvas[own[0]] - np.uint64(runs.linked)
    for _ in range(_JUMPS_TO_LINKER):
        sizes = runs.end[is_stub] - runs.begin[is_stub] + np.uint64(1)
        spans = np.concatenate([spans, np.column_stack([runs.begin[is_stub], sizes])])
        led = np.flatnonzero(runs.has_run & runs.is_own & ~is_stub & _in_spans(spans, runs.origin))
        begins = runs.begin[led]
        space = np.full(len(led), spaces[own[0]], np.uint32)
        numbers, offsets, names = _core.name_symbols(session, begins + loaded, space)
        for row, begin, number, offset in zip(led, begins, numbers.tolist(), offsets.tolist(), strict=True):
            generated = _core.generated_name(last_part(runs.path), int(begin) - runs.linked)
            is_stub[row] = number < 0 or offset != 0 or names[number] == generated
    return is_stub


def _in_spans(spans: _Numbers, addresses: _Numbers) -> NDArray[np.bool_]:
    """Which addresses are in one of the spans, of which the columns are begins and sizes."""
    ordered = spans[np.argsort(spans[:, 0], kind="stable")]
    ends = np.maximum.accumulate(np.append(np.uint64(0), ordered[:, 0] + ordered[:, 1]))
    return addresses < ends[np.searchsorted(ordered[:, 0], addresses, side="right")]


def _near_kinds() -> list[int]:
    """Kinds of branches that compilers emit: other ones do not lead from one run to the next."""
    kinds = _core.BranchKind
    near = (kinds.COND, kinds.JUMP, kinds.JUMP_INDIRECT, kinds.CALL, kinds.CALL_INDIRECT, kinds.RETURN)
    return [int(kind) for kind in near]


def _executed(columns: Mapping[str, NDArray[Any]]) -> dict[int, int]:
    """Executed instructions of each file, most first."""
    executed = columns["instructions"] * columns["count"]
    has_run = (columns["instructions"] != 0) & (columns["file"] >= 0)
    found: dict[int, int] = {}
    for file in np.unique(columns["file"][has_run]).tolist():
        found[file] = int(executed[has_run & (columns["file"] == file)].sum())
    return dict(sorted(found.items(), key=lambda one: (-one[1], one[0])))


def _first_files(trace: RunTrace) -> list[int]:
    """For each file the first one with its build-id, or its path if there is none, as runs have it."""
    known: dict[tuple[bool, str], int] = {}
    return [
        known.setdefault((bool(build_id), build_id or path), number)
        for number, (path, build_id) in enumerate(trace.info.files)
    ]


def _files_at(trace: RunTrace, modules: Any) -> set[int]:
    """Numbers of the files that names of modules mean."""
    first = _first_files(trace)
    found: set[int] = set()
    for name in [modules] if isinstance(modules, str) else modules:
        ranges = trace.open_parts.scope.module_ranges(name)
        ips = np.array([low for low, _, _ in ranges], np.uint64)
        spaces = np.array([space or 0 for _, _, space in ranges], np.uint32)
        files, _ = _core.name_files(trace.opened.session, ips, spaces, None, None, False, False)
        found |= {first[file] for file in files.tolist() if 0 <= file < len(first)}
    return found


def _is_pe(trace: RunTrace, file: int) -> bool:
    path = trace.info.files[file][0].lower()
    return trace.opened.bundle.image_bytes(file) != 0 or path.endswith(_PE_SUFFIXES)


def _names(trace: RunTrace, files: Iterable[int], executed: Mapping[int, int]) -> str:
    """Files with their shares of the instructions."""
    files = list(files)
    total = max(sum(executed.values()), 1)
    shown = [
        f"{one_line(trace.info.files[file][0])} ({executed[file] / total:.1%})" for file in files[:_LISTED]
    ]
    return ", ".join(shown) + (", ..." if len(files) > _LISTED else "")


def _chosen(
    trace: RunTrace, executed: Mapping[int, int], named: set[int], build_id: str | None, *, is_named: bool
) -> tuple[int, list[str]]:
    """The file to export, and notes on it."""
    files = [file for file in executed if file in named]
    notes = []
    if pe := [file for file in files if _is_pe(trace, file)]:
        notes.append(
            f"{counted(len(pe), 'PE file')} left out, for readers take ELF files: "
            f"{_names(trace, pe, executed)}"
        )
        files = [file for file in files if file not in pe]
    if build_id is not None:
        files = [file for file in files if trace.info.files[file][1].startswith(build_id.lower())]
    if not files:
        there = f"; there are {_names(trace, executed, executed)}" if executed else ""
        which = " that is chosen" if is_named else ""
        raise ConfigError(f"no code of an ELF file{which} was executed{there}")
    if len(files) > 1 and not is_named:
        programs = _programs(trace, files)
        files = programs if len(programs) == 1 else files
    if len(files) > 1:
        ids = {trace.info.files[file][1] for file in files}
        names = {trace.info.files[file][0] for file in files}
        by_id = len(names) == 1 and all(ids)
        how = "--build-id HEX (build_id=)" if by_id else "--module NAME (module=)"
        listed = ", ".join(sorted(ids)) if by_id else _names(trace, files, executed)
        raise ConfigError(f"code of {len(files)} files was executed: choose one by {how}: {listed}")
    (file,) = files
    if not trace.info.files[file][1]:
        notes.append(
            f"{one_line(trace.info.files[file][0])} has no build-id: nothing shows whether a file is the "
            "one that was executed"
        )
    return file, notes


def _programs(trace: RunTrace, files: Iterable[int]) -> list[int]:
    """Those files that are the program of the recorded command."""
    command = trace.info.recording.get("command")
    if not command:
        return []
    program = str(command[0])
    names = {PurePosixPath(program).name}
    if found := shutil.which(program):  # python3 may be a link to python3.11
        names.add(Path(found).resolve().name)
    return [file for file in files if PurePosixPath(trace.info.files[file][0]).name in names]


def _linked_address(trace: RunTrace, file: int) -> tuple[int, list[str]]:
    """The address that a file was linked for, and a note if its bytes are not known."""
    path, build_id = trace.info.files[file]
    linked = _core.linked_address(trace.opened.session, file)
    if linked is None and build_id:
        linked = _linked_address_at(path, build_id)
    if linked is not None:
        return linked, []
    # Linux loads position independent code above 4 GiB, and other programs where they were linked for.
    bases = {one.base for one in trace.info.modules if (one.path, one.build_id) == (path, build_id)}
    is_fixed = len(bases) == 1 and max(bases) < _LOWEST_PIE
    where = "are those where it was loaded" if is_fixed else "count from where it was loaded"
    note = f"the bytes of {one_line(path)} are not known as those of an ELF file: addresses {where}"
    return max(bases) if is_fixed else 0, [note]


def _linked_address_at(path: str, build_id: str) -> int | None:
    """The same of the file at a path, if it still has the build-id."""
    bundle = _core.Bundle()
    try:
        bundle.add_image(path)
    except PtkitError:
        return None
    if bundle.files[0][1] != build_id:
        return None
    return _core.linked_address(_core.Session(bundle), 0)


def _left_out(trace: RunTrace, runs: Runs, executed: Mapping[int, int], file: int) -> list[str]:
    """Sentences on instructions that are not in the file, and on losses."""
    totals, own = runs.totals, executed[file]
    everything = totals["instructions"]
    notes = []
    others = [one for one in executed if one != file]
    if others:
        notes.append(
            f"{own:,} of {everything:,} instructions are in {one_line(trace.info.files[file][0])}; --module "
            f"exports another file: {_names(trace, others, executed)}"
        )
    for name, where in (
        ("outside", "in code of no file"),
        ("unknown", "at addresses that are not known"),
        ("crossing", "in runs that go on from one file into another"),
    ):
        if number := totals[f"{name}_instructions"]:
            notes.append(f"{number:,} of {everything:,} instructions are {where}, and are left out")
    if totals["errors"] or totals["gaps"]:
        notes.append(
            f"{counted(totals['errors'], 'error')} and {counted(totals['gaps'], 'gap')}: code may be "
            "missing; `ptkit info --decode` shows where"
        )
    return notes
