"""The questions, their contestants, and their goals."""

from __future__ import annotations

from dataclasses import dataclass

from harness.contest import Contestant


@dataclass(frozen=True)
class Question:
    """One line of the main table."""

    name: str
    what: str
    timed: tuple[Contestant, ...]  # ptkit's first; figures are compared with the last one
    groups: tuple[tuple[Contestant, ...], ...]  # contestants of a group must agree
    least: float = 0  # the goal: how many times as fast as the last one
    stretch: float = 0
    first: bool = False  # only the first decode of a process, with an empty cache folder
    clocked: bool = False  # needs a trace with times
    perf_data: bool = False  # of a file that Linux perf reads

    @property
    def contestants(self) -> set[Contestant]:
        """All contestants, which must have been built."""
        return {*self.timed, *(one for group in self.groups for one in group)}


def _python(question: str, *options: str) -> Contestant:
    return Contestant(question, options, python=True)


def _plain(question: str) -> Contestant:
    """The call without options: the whole table with all columns."""
    return _python(question, "--plain")


def _by_both_engines(question: str) -> tuple[Contestant, ...]:
    return _python(question), _python(question, "--engine", "libipt")


_PACKETS = Contestant("packets/libipt")
_BLOCKS = Contestant("blocks/libipt")
_INSTRUCTIONS = Contestant("instructions/libipt")
_PERF = Contestant("taken_branches/perf", needs="perf")
_LIBXDC = Contestant("coverage/libxdc", variable="PTKIT_LIBXDC", pages=True)
_C_LIBRARY = Contestant("coverage/c_library")
# libxdc takes it that returns are not compressed. So does ptkit if one says so.
_UNCOMPRESSED = Contestant("coverage/ptkit", ("--disretc",), variable="PTKIT_LIBXDC")
_IPTR = Contestant("packets/iptr", variable="PTKIT_IPTR", pages=True)
_EDGES = Contestant("edges/ptkit")
_EDGES_AGREE = ((_EDGES, *_by_both_engines("edges")),)


def _pair(question: str, other: str) -> tuple[Contestant, ...]:
    return Contestant(f"{question}/ptkit"), Contestant(f"{question}/{other}")


QUESTIONS = (
    Question(
        "packets",
        "every packet",
        (Contestant("packets/ptkit"), _IPTR, _PACKETS),
        (_pair("packets", "libipt"), (Contestant("packets/counts"), _IPTR)),
        12,
        20,
    ),
    Question(
        "columns",
        "packets into columns (offset, kind, ip, payload)",
        (_python("columns"), _plain("columns"), _PACKETS),
        (_by_both_engines("columns"),),
        7,
        10,
    ),
    Question(
        "blocks",
        "every block, into a sink in C++, from nothing",
        _pair("blocks", "libipt"),
        (_pair("blocks", "libipt"),),
    ),
    Question(
        "edges",
        "exact counts of all edges, code known",
        (_EDGES, _python("edges"), _BLOCKS),
        _EDGES_AGREE,
        32,
        50,
    ),
    Question(
        "cold_code",
        "the same of the second half, code known by the first half",
        (Contestant("cold_code/ptkit"), _BLOCKS),
        ((Contestant("cold_code/ptkit"), Contestant("cold_code/no_warm_up")), *_EDGES_AGREE),
        20,
        30,
    ),
    Question(
        "first",
        "the same, first decode of a process",
        (_EDGES, _BLOCKS),
        _EDGES_AGREE,
        8,
        16,
        first=True,
    ),
    Question(
        "coverage",
        "edges of a buffer into a map of 64 KiB, as fuzzers want them, code known",
        (Contestant("coverage/ptkit"), _UNCOMPRESSED, _C_LIBRARY, _LIBXDC, _BLOCKS),
        (
            (Contestant("coverage/ptkit"), _UNCOMPRESSED, _C_LIBRARY, *_by_both_engines("edges")),
            (Contestant("coverage/conditionals"), _LIBXDC),
        ),
    ),
    Question(
        "branches",
        "every branch through iter_branches(reuse=True)",
        (_python("branches"), _plain("branches"), _BLOCKS),
        (_by_both_engines("branches"),),
        18,
        25,
    ),
    Question(
        "taken_branches",
        "from and to of every taken branch of a perf.data file, opened anew",
        (
            *_by_both_engines("taken_branches"),
            Contestant("taken_branches/perf", ("--null",), needs="perf"),
            _PERF,
        ),
        ((*_by_both_engines("taken_branches"), _PERF),),
        perf_data=True,
    ),
    Question(
        "timed_branches",
        "the same with flags, tsc and tsc_error",
        (_python("timed_branches"), _plain("timed_branches"), Contestant("timed_branches/libipt")),
        (_by_both_engines("timed_branches"),),
        10,
        16,
        clocked=True,
    ),
    Question(
        "functions",
        "sums of all calls by function; beside every branch with all columns",
        (_python("functions"), _python("all_branches")),
        ((_python("functions"), _python("calls")),),
        0.67,
    ),
    Question(
        "code_coverage",
        "what ran, as a set of blocks, edges, functions and lines; beside counts of all edges",
        (_python("code_coverage"), _python("edges")),
        (_by_both_engines("code_coverage"),),
        0.67,
    ),
    Question(
        "calls",
        "a row for every call; beside every branch with all columns",
        (_python("calls"), _python("all_branches")),
        ((_python("functions"), _python("calls")),),
        0.4,
    ),
    Question(
        "call_sites",
        "a row for every call of a perf.data file, opened anew",
        (_python("call_sites"), Contestant("taken_branches/perf", ("--calls", "--null"), needs="perf")),
        ((_python("call_sites"), Contestant("taken_branches/perf", ("--calls",), needs="perf")),),
        20,
        perf_data=True,
    ),
    Question(
        "instructions",
        "the IP of every instruction through iter_instructions(reuse=True)",
        (_python("instructions"), _plain("instructions"), Contestant("instructions/ptkit"), _INSTRUCTIONS),
        (_by_both_engines("instructions"), _pair("instructions", "libipt")),
        40,
        60,
    ),
    Question(
        "time",
        "the time of every stream offset that packets have",
        (Contestant("time/ptkit"),),
        ((Contestant("time/ptkit"),),),
        clocked=True,
    ),
    Question("encode", "every block, encoded anew", _pair("encode", "calls"), (_pair("encode", "calls"),)),
)
