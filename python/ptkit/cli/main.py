"""Entry point: finds the verb, runs it, turns failures into one line and exit status 2."""

from __future__ import annotations

import gc
import importlib
import os
import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager

import ptkit
from ptkit.cli.output.terminal import print_text
from ptkit.cli.parser import EXIT_INTERRUPTED, EXIT_USAGE, Parser
from ptkit.errors import OutOfMemoryError, PtkitError
from ptkit.support.text import shortened_message

# Help of each verb, in the order of `ptkit --help`. The modules are imported when they are needed.
VERBS = {
    "record": "trace a program",
    "info": "print the contents of a trace: streams, processor, clock, code, losses",
    "packets": "print packets, in the manner of ptdump",
    "branches": "print branches: from, to, kind, time",
    "instructions": "print instructions with disassembly and symbols, in the manner of ptxed",
    "events": "print events: PTWRITE, interrupts, changes of address space and mode, ...",
    "edges": "print how often each branch went where, the most frequent ones first",
    "coverage": "print what ran, in one recording or in one alone of several; fail below a percentage",
    "annotate": "print a function's instructions or source lines with counts, branches and loops",
    "functions": "print where the work went: instructions, calls and times of each function",
    "calls": "print the tree of calls in order of entry, in the manner of a function-graph tracer",
    "tree": "print where the work went by calling context, the heaviest callee first",
    "diff": "print where two runs of one program part, with line and stacks",
    "view": "show a whole run in a browser: a timeline of all calls, functions with their code",
    "demo": "record a program that is surely here, print what it did, and open its page",
    "threads": "print how long each thread ran, and where it waited",
    "save": "write a recording of any format as a bundle",
    "redact": "leave paths, command lines and names out of a recording",
    "export": "write a recording for other tools",
    "index": "write an index beside a trace, so that parts of it can be decoded alone",
    "verify": "compare the decoder with libipt, and print the first difference with its context",
    "bench": "measure how fast this machine decodes, and compare with libipt",
    "msr": "explain and plan registers of Processor Trace",
    "selftest": "check this processor's tracing against single steps, and write a report to send",
    "doctor": "print which ways of recording work on this system, and what others need",
}

# numpy's BLAS starts a thread for each processor, which waits actively: ptkit multiplies no matrices.
_BLAS_THREADS = "OPENBLAS_NUM_THREADS"

_FEWER_ROWS = "choose fewer rows (--limit, --time, --stream) or fewer --threads"


def build_parser(words: Collection[str] = VERBS) -> Parser:
    """Make the parser of all verbs; those that are among `words` have their options."""
    parser = Parser(
        prog="ptkit",
        description="Capture and decode Intel Processor Trace.",
        epilog="""\
examples:
  ptkit record -o sort.ptk -- sort README.md
  ptkit info sort.ptk
  ptkit branches sort.ptk --symbol malloc | head
  ptkit branches --help""",
    )
    parser.add_argument("--version", action="version", version=f"ptkit {ptkit.__version__}")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True, parser_class=Parser)
    for name, text in VERBS.items():
        if name not in words:
            verbs.add_parser(name, help=text)
            continue
        with _quick_imports():
            module = importlib.import_module(f"ptkit.cli.verbs.{name}")
        verb = verbs.add_parser(name, help=text, description=module.DESCRIPTION, epilog=module.EXAMPLES)
        module.prepare_parser(verb)
        verb.set_defaults(run=module.run)
    return parser


@contextmanager
def _quick_imports() -> Iterator[None]:
    """Import without garbage collection, and without threads of BLAS in this process alone."""
    threads, collects = os.environ.get(_BLAS_THREADS), gc.isenabled()
    os.environ.setdefault(_BLAS_THREADS, "1")
    gc.disable()  # imports make many objects, and no garbage
    try:
        yield
    finally:
        if threads is None:
            del os.environ[_BLAS_THREADS]
        if collects:
            gc.enable()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments : sequence of str, optional
        The words after the program's name; ``sys.argv[1:]`` by default.

    Returns
    -------
    int
        Exit status: 0, the verb's own (1: ``verify`` and ``diff`` found a difference, or ``msr plan`` what a
        processor would refuse; ``record``: the program's), 2 after an error, 130 after Ctrl-C.
    """
    words = sys.argv[1:] if arguments is None else arguments
    options = build_parser(words).parse_args(words)
    if arguments is None:
        gc.freeze()  # what is imported stays until the process ends
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
        print_text(f"ptkit {options.verb}: error: {_with_option(_sentence(error), words)}", errors=True)
        return EXIT_USAGE
    return status


def _with_option(sentence: str, words: Sequence[str]) -> str:
    """A sentence about an argument of Python names the option that was given instead."""
    name, colon, rest = sentence.partition(": ")
    option = f"--{name.replace('_', '-')}"
    given = any(word == option or word.startswith(f"{option}=") for word in words)
    return f"{option}{colon}{rest}" if colon and given else sentence


def _sentence(error: Exception) -> str:
    """One line about the error, and for surprises how to learn more."""
    text = shortened_message(" ".join(str(error).split()))  # values of files may be in it
    if isinstance(error, OutOfMemoryError):
        return f"{error.fact}; {_FEWER_ROWS}"
    if isinstance(error, (PtkitError, OSError, ValueError)):
        return text
    if isinstance(error, MemoryError):
        return f"out of memory; {_FEWER_ROWS}"
    return f"{type(error).__name__}: {text}; PTKIT_DEBUG=1 shows where"
