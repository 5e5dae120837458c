"""Entry point: finds the verb, runs it, turns failures into one line and exit status 2."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from typing import Any

import ptkit
from ptkit.cli.plain import say
from ptkit.errors import OutOfMemoryError, PtkitError

# In the order of `ptkit --help`.
VERBS = (
    "record",
    "info",
    "packets",
    "branches",
    "instructions",
    "redact",
    "export",
    "index",
    "verify",
    "bench",
    "cache",
    "msr",
    "doctor",
)

EXIT_USAGE = 2
EXIT_INTERRUPTED = 130

_FEWER_ROWS = "choose fewer rows (--limit, --time, --stream) or fewer --threads"


class _Once(argparse._StoreAction):
    """Stores the value of an option, and refuses a second one: the first must not vanish without a word."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        given: frozenset[str] = getattr(namespace, "given_options", frozenset())
        if option_string is not None and self.dest in given:
            parser.error(f"{'/'.join(self.option_strings)} is given twice: it takes one value")
        namespace.given_options = given | {self.dest}
        super().__call__(parser, namespace, values, option_string)


class _Parser(argparse.ArgumentParser):
    """Reports errors on one line, and says where help is."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        for name in (None, "store"):
            self.register("action", name, _Once)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        options, rest = super().parse_known_args(args, namespace)
        if hasattr(options, "given_options"):
            del options.given_options
        return options, rest

    def error(self, message: str) -> None:  # type: ignore[override]
        self.exit(EXIT_USAGE, f"{self.prog}: error: {message} (see {self.prog} --help)\n")


def build_parser() -> argparse.ArgumentParser:
    """Make the parser of all verbs."""
    parser = _Parser(
        prog="ptkit",
        description="Capture and decode Intel Processor Trace.",
        epilog="examples:\n"
        "  ptkit record -o sort.ptk -- sort README.md\n"
        "  ptkit info sort.ptk\n"
        "  ptkit branches sort.ptk --symbol malloc | head",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"ptkit {ptkit.__version__}")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True, parser_class=_Parser)
    for name in VERBS:
        module = importlib.import_module(f"ptkit.cli.{name}")
        verb = verbs.add_parser(
            name,
            help=module.HELP,
            description=module.DESCRIPTION,
            epilog=module.EXAMPLES,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        module.prepare_parser(verb)
        verb.set_defaults(run=module.run)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments : sequence of str, optional
        The words after the program's name; ``sys.argv[1:]`` by default.

    Returns
    -------
    int
        Exit status: 0, the verb's own (1: ``verify`` found a difference, or ``msr plan`` what a processor
        would refuse; ``record``: the program's), 2 after an error, 130 after Ctrl-C.
    """
    options = build_parser().parse_args(arguments)
    try:
        status: int = options.run(options)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader (head, less) has had enough. Keep the interpreter from flushing into the closed pipe.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        print("ptkit: interrupted", file=sys.stderr)
        return EXIT_INTERRUPTED
    except Exception as error:
        if os.environ.get("PTKIT_DEBUG", "0") != "0":
            raise
        say(f"ptkit {options.verb}: error: {_sentence(error)}", errors=True)
        return EXIT_USAGE
    return status


def _sentence(error: Exception) -> str:
    """One line that says what went wrong, and for surprises how to learn more."""
    text = " ".join(str(error).split())
    if isinstance(error, OutOfMemoryError):
        return f"{error.fact}; {_FEWER_ROWS}"
    if isinstance(error, (PtkitError, OSError, ValueError)):
        return text
    if isinstance(error, MemoryError):
        return f"out of memory; {_FEWER_ROWS}"
    return f"{type(error).__name__}: {text}; PTKIT_DEBUG=1 shows where"
