"""``ptkit doctor``: what this machine can do, and what is missing."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path

import ptkit
from ptkit import _core
from ptkit.cli import common
from ptkit.cli.output.json_values import print_document
from ptkit.cli.output.terminal import say

DESCRIPTION = """\
Says which ways of recording work on this machine and what the others need, which decoders there are, and
whether other users could read a recording in this folder."""
EXAMPLES = """examples:
  ptkit doctor
  ptkit doctor --json"""


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    common.add_json_option(parser)


def run(options: argparse.Namespace) -> int:
    """Print a table of back ends and engines."""
    from ptkit import capture
    from ptkit.capture.output_file import place_warnings

    backends = capture.probe()
    place = place_warnings(Path.cwd())
    best = next((backend.name for backend in backends if backend.available), None)
    engines = _core.engines()
    if options.json:
        print_document(
            "doctor",
            {
                "backends": [asdict(backend) for backend in backends],
                "best": best,
                "engines": engines,
                "place": place,
                "version": ptkit.__version__,
            },
        )
        return 0
    from rich.console import Console
    from rich.table import Table

    table = Table(title="Recording")
    for heading in ("back end", "here", "what it is, or what it lacks", "how to get it"):
        table.add_column(heading)
    for backend in backends:
        for one in (backend, *backend.others):
            name = one.name if one is backend else f"  --{one.records.replace('_', '-')}"
            table.add_row(name, "yes" if one.available else "no", one.detail, one.remedy)
    console = Console()
    console.print(f"`ptkit record` uses: {best or 'nothing, as no back end works here'}")
    console.print(table)
    console.print(f"decoders: {', '.join(engines)}")
    for sentence in place:
        say(f"ptkit doctor: warning: {sentence}", errors=True)
    return 0
