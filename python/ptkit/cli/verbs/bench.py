"""``ptkit bench``: how fast this machine decodes."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import ptkit
from ptkit import _core
from ptkit.cli import common
from ptkit.cli.addresses import ImageArgument
from ptkit.cli.output.json_values import print_document
from ptkit.cli.output.progress import notices
from ptkit.cli.synthetic import CODE, synthetic_stream
from ptkit.cli.throughput import TABLES, Figure, measure
from ptkit.decode.plan import thread_count
from ptkit.errors import PtkitError
from ptkit.support.system import STANDARD_INPUT
from ptkit.support.text import counted
from ptkit.trace import Trace

DESCRIPTION = """\
Decodes packets, counts of edges, branches and instructions again and again, with one thread and with all, and
with each instruction set of the processor. Figures are those of the fastest round; the first round of a trace
also decodes its code. 1 MB is 10^6 bytes of trace. The same tables by libipt's packet and instruction
decoders follow, if this build has libipt. Rows are compared with libipt's; exit status 1 if they differ."""
EXAMPLES = """examples:
  ptkit bench
  ptkit bench sort.ptk --seconds 0.1
  ptkit bench --made --json"""

_MADE_BYTES = 128 << 10
_MOST_INSTRUCTIONS = 10_000_000  # some 0.8 MB of trace
_PROGRAM = ["-I", "-S", "-c", "print(sum(len(str(i * i)) for i in range(20_000)))"]
# In a process of its own, for the instruction set is chosen once.
_CHILD = "from ptkit.cli.verbs.bench import answer; answer()"


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    common.add_open_options(
        parser, without="a program recorded now, or a synthetic stream where nothing can be recorded"
    )
    parser.set_defaults(engine="ptkit")
    parser.add_argument(
        "--made", action="store_true", help="decode a synthetic stream instead of a recording"
    )
    parser.add_argument(
        "--seconds",
        metavar="S",
        type=_seconds,
        default=0.5,
        help="time for each line of the result (default: 0.5)",
    )
    common.add_json_option(parser)


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None
    if not 0 < value <= 3600:
        raise argparse.ArgumentTypeError(f"{text} is not above 0 and up to 3600")
    return value


def run(options: argparse.Namespace) -> int:
    """Measure, and print a table."""
    if options.path is not None and options.made:
        raise ValueError("--made takes no FILE: it makes a stream itself")
    if options.path == STANDARD_INPUT:
        raise ValueError("standard input can be read once, and bench reads it several times: give a file")
    with notices() as notice, _input(options, notice) as source:
        trace = _opened(options)
        figures = _ours(trace, options, notice)
        for isa in _core.isas():
            if isa != _core.isa():
                notice(f"timing with {isa}")
                figures += _by_isa(options, isa)
        reference = _libipt(options, figures, notice)
    differing = [one for one in reference if not _same(one, figures)]
    if options.json:
        print_document("bench", _report(source, trace, figures + reference))
    else:
        _print(source, trace, figures, reference)
    errors = max(one.errors for one in figures)
    if errors:
        text = f"{counted(errors, 'error')}: not everything could be decoded; --image and --code give code"
        print(f"ptkit: warning: {text}", file=sys.stderr)
    for one in differing:
        print(
            f"ptkit: warning: {one.table}: libipt gives {counted(one.rows, 'row')} and "
            f"{counted(one.errors, 'error')}; `ptkit verify` shows the first difference",
            file=sys.stderr,
        )
    return 1 if differing else 0


@contextmanager
def _input(options: argparse.Namespace, notice: Callable[[str], None]) -> Iterator[str]:
    """Yields a description of the input; records a program if none is given."""
    from ptkit import capture

    if options.path is not None:
        yield options.path
        return
    emulator = any(backend.name == "emulator" and backend.available for backend in capture.probe())
    if options.made or not emulator:
        options.made = True
        yield "a synthetic stream"
        return
    with tempfile.TemporaryDirectory(prefix="ptkit-bench-") as folder:
        notice("recording a program")
        path = Path(folder) / "bench.ptk"
        program = [str(Path(sys.executable).resolve()), *_PROGRAM]
        ptkit.Recorder(
            program, path, backend="emulator", quiet=True, max_instructions=_MOST_INSTRUCTIONS
        ).run()
        options.path = str(path)
        yield "Python, recorded in the emulator"


def _opened(options: argparse.Namespace, engine: str | None = None) -> Trace:
    again = engine is not None  # warnings were printed when it was opened first
    engine = engine or options.engine
    if options.made:
        return ptkit.open(synthetic_stream(_MADE_BYTES), images=[CODE], cpu="6/143/8", engine=engine)
    return common.open_trace(argparse.Namespace(**{**vars(options), "engine": engine}), warn=not again)


def _ours(trace: Trace, options: argparse.Namespace, notice: Callable[[str], None]) -> list[Figure]:
    """With one thread, and with as many as there are."""
    cores = options.threads or thread_count(None)
    figures = []
    for table in TABLES:
        for threads in dict.fromkeys((1, cores)):
            notice(f"timing {table} with {counted(threads, 'thread')}")
            figures.append(measure(trace, table, threads=threads, seconds=options.seconds))
    return figures


def _libipt(
    options: argparse.Namespace, figures: Sequence[Figure], notice: Callable[[str], None]
) -> list[Figure]:
    if "libipt" not in _core.engines():
        return []
    trace = _opened(options, "libipt")
    found = []
    for table in TABLES:
        if table == "edges":  # as much work as its branches
            continue
        notice(f"timing {table} by libipt")
        like = next(one for one in figures if one.table == table)
        if like.rows:
            found.append(measure(trace, table, threads=1, seconds=options.seconds, like=like))
    return found


def _same(one: Figure, figures: Sequence[Figure]) -> bool:
    """Whether the numbers of rows and errors are equal. After errors engines continue elsewhere."""
    like = next(other for other in figures if other.table == one.table)
    return not one.whole or like.errors > 0 or (one.rows, one.errors) == (like.rows, like.errors)


def _by_isa(options: argparse.Namespace, isa: str) -> list[Figure]:
    """With one thread, in a process that may use this instruction set only."""
    options_given = {
        name: value for name, value in vars(options).items() if name not in ("run", "given_options")
    }
    environment = {**os.environ, "PTKIT_FORCE_ISA": isa}
    done = subprocess.run(
        [sys.executable, "-c", _CHILD],
        input=json.dumps(options_given),
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        raise PtkitError(f"with PTKIT_FORCE_ISA={isa}: {lines[-1]}")
    return [Figure(**figure) for figure in json.loads(done.stdout)]


def answer() -> None:
    """Measure with the options in the JSON on standard input, with one thread; print the figures as JSON."""
    given = json.load(sys.stdin)
    for name in ("image", "code", "symbols"):  # JSON made lists of them
        given[name] = [ImageArgument(*one) for one in given[name]]
    options = argparse.Namespace(**given)
    trace = _opened(options)
    figures = [measure(trace, table, threads=1, seconds=options.seconds) for table in TABLES]
    print(json.dumps([asdict(figure) for figure in figures]))


def _report(source: str, trace: Trace, figures: Sequence[Figure]) -> dict[str, Any]:
    lines = [
        asdict(one)
        | {"megabytes_per_second": one.megabytes_per_second, "rows_per_second": one.rows_per_second}
        for one in figures
    ]
    return {
        "trace": source,
        "bytes": trace.info.bytes,
        "streams": len(trace.streams),
        "version": ptkit.__version__,
        "processor": _processor(),
        "processors": os.cpu_count(),
        "figures": lines,
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return "unknown processor"
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, "unknown processor")


def _print(source: str, trace: Trace, figures: Sequence[Figure], reference: Sequence[Figure]) -> None:
    streams = counted(len(trace.streams), "stream")
    print(f"{source}: {trace.info.bytes / 1e6:,.1f} MB of trace in {streams}; {_processor()}")
    print(f"{'table':14}{'decoder':10}{'threads':>8}{'MB/s':>10}{'M rows/s':>10}{'ms':>11}{'x libipt':>10}")
    for table in TABLES:
        base = next(
            (one for one in reference if one.table == ("branches" if table == "edges" else table)), None
        )
        for one in (*(one for one in figures if one.table == table), base):
            if one is None or (one is base and one.table != table):
                continue
            ratio = ""
            # libipt may have had no time to decode a row.
            if base is not None and one is not base and base.bytes:
                ratio = f"{one.megabytes_per_second / base.megabytes_per_second:.1f}"
            speed = "no rows" if not one.rows else f"{one.megabytes_per_second:,.1f}"
            print(
                f"{table:14}{one.isa or one.engine:10}{one.threads:8}{speed:>10}"
                f"{one.rows_per_second / 1e6:10,.1f}{one.seconds * 1e3:11,.3f}{ratio:>10}".rstrip()
            )
