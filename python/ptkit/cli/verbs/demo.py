"""``ptkit demo``: record a real program, print what it did, and open its page."""

from __future__ import annotations

import argparse
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from shlex import join
from typing import Any

import numpy as np

import ptkit
from ptkit.capture import probe
from ptkit.cli import common
from ptkit.cli.output.json_values import print_document
from ptkit.cli.output.terminal import print_text
from ptkit.errors import ConfigError, OpenError, UnsupportedError
from ptkit.support.text import counted
from ptkit.view.opening import open_in_browser

DESCRIPTION = """\
Records the Python that runs ptkit, prints its hottest functions and its slowest call with the reason, and
opens the page that shows the whole run. It takes some ten seconds. Files are written into one folder only:
-o, or a private folder in your temporary one, and its path is printed.

The best back end that works here records (`ptkit doctor` lists them). By single steps, only the begin of the
program is recorded. No browser is started with --no-open, without a display, over SSH and in CI."""
EXAMPLES = """examples:
  ptkit demo
  ptkit demo -o demo --no-open
  ptkit demo --backend step
  ptkit demo --no-open --json"""

_PROGRAM = "print(sorted(map(str, range(5000)))[:3])"
_STEPS = 60_000  # instructions by single steps: some seconds
_RECORDING, _PAGE = "demo.ptk", "demo.html"
_TOP = 8
_REASONS = 3
_LEAST_CALLS = 8  # of a function of which the slowest call is looked at
_SLOWEST = 1.0 - 1e-9  # share: one call
_MOST_SHARE = 0.2  # of the run, that this call may be


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.add_argument(
        "-o", "--output", metavar="FOLDER", help="where files are written (default: a private folder)"
    )
    parser.add_argument(
        "--backend",
        choices=("auto", *(one.name for one in probe())),
        default="auto",
        help="what records (default: auto, the best that works here)",
    )
    parser.add_argument("--no-open", action="store_true", help="start no browser")
    common.add_json_option(parser)


def run(options: argparse.Namespace) -> int:
    """Record, print, and open the page."""
    backend = _backend(options.backend)
    folder = _folder(options.output)
    try:
        _show(folder, backend, options)
    except BaseException:
        with suppress(OSError):
            folder.rmdir()  # what was not written leaves no folder
        raise
    return 0


def _backend(name: str) -> str:
    """The back end that records.

    Raises
    ------
    UnsupportedError
        If none works here.
    """
    found = [one for one in probe() if name in ("auto", one.name)]
    for one in found:
        if one.available:
            return one.name
    lacking = "; ".join(f"{one.name}: {one.missing}" for one in found)
    raise UnsupportedError(f"nothing can be recorded here ({lacking}); `ptkit doctor` says how to get it")


def _folder(output: str | None) -> Path:
    if output is None:
        return Path(tempfile.mkdtemp(prefix="ptkit-demo-"))  # mode 0700
    folder = Path(output)
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"{output}: is no folder; -o takes a folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OpenError(f"{output}: cannot write: {error.strerror or error}") from None
    return folder


def _show(folder: Path, backend: str, options: argparse.Namespace) -> None:
    """Record the program, and print and show what it did."""
    path, output = folder / _RECORDING, folder / _PAGE
    program = [sys.executable, "-I", "-S", "-c", _PROGRAM]
    lines = _Lines(is_quiet=options.json)
    lines.print(f"$ ptkit record -o {path} -- {join(program)}")
    limits: dict[str, Any] = {"max_instructions": _STEPS} if backend == "step" else {}
    trace = ptkit.record(program, output=path, backend=backend, quiet=True, **limits)
    recording = trace.recording
    assert recording is not None
    branches = counted(recording.branches, "branch", "branches") + ", " if recording.branches else ""
    lines.print(
        f"{counted(recording.instructions, 'instruction')}, {branches}by the back end {backend}, "
        f"in {recording.seconds:.1f} s"
    )
    if recording.limited:
        lines.print("single steps take long: only the begin of the program is recorded")
    functions = trace.functions()
    hottest = _hottest(functions)
    lines.print_hottest(hottest, int(functions["self_instructions"].sum()), path)
    slowest = _slowest(trace, functions)
    lines.print_slowest(slowest, path)
    page = trace.view()
    page.save(output)
    reason = "" if options.no_open else open_in_browser(str(output))
    lines.print("", f"$ ptkit view {path} -o {output}", *page.notes)
    lines.print(f"open {output}" + (f" (no browser is started, as {reason})" if reason else ""))
    lines.print(f"files: {path}, {output}")
    if options.json:
        document = {
            "program": program,
            "backend": backend,
            "limited": recording.limited,
            "instructions": recording.instructions,
            "hottest": hottest,
            "slowest": slowest,
            "recording": str(path),
            "page": str(output),
            "notes": list(page.notes),
            "opened": not (options.no_open or reason),
        }
        print_document("demo", document)


def _hottest(functions: ptkit.Table) -> list[dict[str, Any]]:
    """The functions that executed most instructions."""
    rows = functions[np.argsort(~functions["self_instructions"], kind="stable")[:_TOP]]
    names = ("self_instructions", "instructions", "count")
    columns = zip(rows.named("function"), *(rows[name].tolist() for name in names), strict=True)
    return [dict(zip(("function", *names), row, strict=True)) for row in columns]


def _slowest(trace: ptkit.Trace, functions: ptkit.Table) -> dict[str, Any] | None:
    """The call that took most instructions more than half of its function's calls, and why."""
    name = _uneven(functions)
    if name is None:
        return None
    found = trace.compare(name, slow=_SLOWEST, sample=0)
    members = ("name", "slow", "fast", "slow_count", "fast_count")
    return {
        "function": name,
        "count": found.calls,
        "instructions": found.slow_from,
        "half": found.fast_to,
        "more": [{name: getattr(one, name) for name in members} for one in found.functions[:_REASONS]],
    }


def _uneven(functions: ptkit.Table) -> str | None:
    """The function of which the longest call has most instructions more than its median; no wrapper."""
    longest, median = (functions[name].astype(np.int64) for name in ("max_instructions", "p50_instructions"))
    most = _MOST_SHARE * int(functions["self_instructions"].sum())
    fits = (functions["count"] >= _LEAST_CALLS) & (longest <= most) & (longest > median)
    names = functions.named("function_full")
    for row in np.argsort(np.where(fits, median - longest, 1), kind="stable").tolist():
        if not fits[row]:
            break
        if names[row] is not None and names.count(names[row]) == 1:
            return str(names[row])
    return None


class _Lines:
    """Prints what was found, with the command that finds it."""

    def __init__(self, *, is_quiet: bool) -> None:
        self._is_quiet = is_quiet

    def print(self, *lines: str) -> None:
        if not self._is_quiet:
            for line in lines:
                print_text(line)

    def print_hottest(self, hottest: list[dict[str, Any]], total: int, path: Path) -> None:
        self.print("", f"$ ptkit functions {path} --limit {_TOP}")
        self.print(f"{'self':>6} {'total':>6} {'calls':>9}  function")
        for one in hottest:
            own, whole = (one[name] / max(total, 1) for name in ("self_instructions", "instructions"))
            self.print(f"{own:6.1%} {whole:6.1%} {one['count']:9,}  {one['function'] or '?'}")

    def print_slowest(self, slowest: dict[str, Any] | None, path: Path) -> None:
        if slowest is None:
            self.print("", "no function has calls of different lengths")
            return
        name = slowest["function"]
        self.print("", f"$ ptkit functions {path} --slow {join([name])}")
        self.print(
            f"{name}: one of its {slowest['count']:,} calls took {slowest['instructions']:,} instructions; "
            f"half of them take {slowest['half']:,} or fewer. It had more of:"
        )
        for one in slowest["more"]:
            self.print(
                f"  {one['name']}: {one['slow']:,.0f} instructions in {one['slow_count']:,.0f} calls, "
                f"instead of {one['fast']:,.0f} in {one['fast_count']:,.0f}"
            )
