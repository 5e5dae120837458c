#!/usr/bin/env python3
"""Runs the benchmarks: contestants are checked against each other, then timed in interleaved rounds.

Needs a build with -DPTKIT_BENCHMARKS=ON, ptkit (installed, or by PYTHONPATH), and the corpus (environment
variable PTKIT_CORPUS, default ../shared/traces next to the repository). See benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from harness import growth, headline, parts, table, threads
from harness.contest import ROOT, Checks
from harness.machine import machine
from harness.questions import QUESTIONS, Question
from recordings import Recording, load

CORPUS = ("mruby", "avscript_32", "Unzip")
WHAT = ("table", "headline", "threads", "growth", "parts", "all")


def parse_arguments() -> argparse.Namespace:
    corpus = os.environ.get("PTKIT_CORPUS", str(ROOT.parent / "shared" / "traces"))
    names = [question.name for question in QUESTIONS]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("what", nargs="?", choices=WHAT, default="table", help="default: table")
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "bench", help="build folder")
    parser.add_argument("--trace", type=Path, action="append", help="what is decoded (may be repeated)")
    parser.add_argument("--corpus", type=Path, default=Path(corpus), help="folder of the corpus")
    parser.add_argument("--recordings", type=Path, help="folder that recordings.py has filled")
    parser.add_argument("--match", default="", help="only recordings with this in their name")
    parser.add_argument("--question", action="append", choices=names, help="only this one (may be repeated)")
    parser.add_argument("--rounds", type=int, default=5, help="processes for each contestant")
    parser.add_argument("--seconds", type=float, default=0.5, help="time for each process")
    parser.add_argument("--most", type=int, default=2048, help="growth: megabytes")
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()
    if arguments.rounds < 1 or arguments.seconds < 0:
        parser.error("--rounds must be at least 1, and --seconds not negative")
    return arguments


def recordings_of(arguments: argparse.Namespace) -> list[Recording]:
    """The chosen recordings."""
    if arguments.recordings is None:
        return []
    found = [one for name, one in load(arguments.recordings).items() if arguments.match in name]
    if not found:
        sys.exit(
            f"{arguments.recordings} has no recording: python3 benchmarks/recordings.py FOLDER makes some"
        )
    return found


def traces_of(arguments: argparse.Namespace, found: list[Recording]) -> list[tuple[str, Path, bool]]:
    """Name, path, and whether the trace has times."""
    if arguments.trace:
        return [(path.name, path, True) for path in arguments.trace]
    if found:
        return [(one.name, arguments.recordings / one.path, one.kind == "cyc") for one in found]
    traces = [(name, arguments.corpus / "libxdc" / name, False) for name in CORPUS]
    there = [one for one in traces if one[1].exists()]
    if not there:
        sys.exit(f"no trace in {arguments.corpus}: set PTKIT_CORPUS to the corpus, or give --trace")
    return there


def chosen_questions(arguments: argparse.Namespace) -> list[Question]:
    """The chosen questions that have all contestants. The others are named on stderr."""
    chosen = [one for one in QUESTIONS if one.name in (arguments.question or [one.name])]
    complete = []
    for one in chosen:
        missing = [str(it.path(arguments.build)) for it in one.contestants if not it.exists(arguments.build)]
        if missing:
            print(f"{one.name}: left out: not built: {', '.join(missing)}", file=sys.stderr)
        else:
            complete.append(one)
    return complete


def run_table(arguments: argparse.Namespace, checks: Checks, found: list[Recording]) -> list[dict[str, Any]]:
    """Every question of every trace."""
    reports = []
    questions = chosen_questions(arguments)
    for name, path, clocked in traces_of(arguments, found):
        report: dict[str, Any] = {"name": name, "trace": str(path), "questions": []}
        if not arguments.json:
            print(f"\n=== {name}")
        for question in questions:
            if question.clocked and not clocked and not arguments.question:
                continue
            result = table.ask(
                question, arguments.build, path, checks, rounds=arguments.rounds, seconds=arguments.seconds
            )
            if result is None:
                continue
            report["questions"].append(result)
            if not arguments.json:
                table.show(result)
                sys.stdout.flush()
        reports.append(report)
    if not arguments.json:
        table.summary(reports)
    return reports


def run_headline(
    arguments: argparse.Namespace, checks: Checks, found: list[Recording]
) -> list[dict[str, Any]]:
    """Every recording against its program."""
    if not found:
        sys.exit("the headline needs --recordings FOLDER: python3 benchmarks/recordings.py FOLDER makes some")
    rows = [
        headline.compare(
            one,
            arguments.build,
            arguments.recordings,
            checks,
            rounds=arguments.rounds,
            seconds=arguments.seconds,
        )
        for one in found
    ]
    if not arguments.json:
        headline.show(rows)
    return rows


def run_threads(arguments: argparse.Namespace, found: list[Recording]) -> list[dict[str, Any]]:
    """Two threads on each trace."""
    if not arguments.json:
        print("\ntwo threads against two processes at the same time, wall time")
    rows = []
    for _, path, _ in traces_of(arguments, found):
        for question in ("edges", "branches"):
            result = threads.compare(
                question,
                arguments.build,
                path,
                threads=2,
                rounds=arguments.rounds,
                seconds=arguments.seconds,
            )
            rows.append(result)
            if not arguments.json:
                threads.show(result)
    return rows


def run_growth(arguments: argparse.Namespace, found: list[Recording]) -> list[dict[str, Any]]:
    """The largest trace, in parts and repeated."""
    largest = max(found, key=lambda one: one.trace_bytes, default=None)
    path = arguments.recordings / largest.path if largest else traces_of(arguments, found)[0][1]
    rows = [row for name in growth.TABLES for row in growth.grow(name, arguments.build, path, arguments.most)]
    if not arguments.json:
        print(f"\ngrowth: {path.name}")
        growth.show(rows)
    if wrong := growth.contradictions(rows):
        sys.exit(f"{path}: " + "; ".join(wrong))
    return rows


def run_parts(arguments: argparse.Namespace, found: list[Recording]) -> list[dict[str, Any]]:
    """The largest recording that has CYC packets."""
    clocked = [one for one in found if one.kind == "cyc"]
    if not clocked:
        return []
    largest = max(clocked, key=lambda one: one.trace_bytes)
    rows = parts.compare(arguments.recordings / largest.path, arguments.rounds)
    if not arguments.json:
        parts.show(rows)
    return rows


def keep(report: dict[str, Any], build: Path) -> None:
    """Keep the figures in the build folder, by time and commit."""
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
    path = build / "results" / f"{stamp}-{report['machine']['commit']}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(report, indent=1) + "\n")
    print(f"kept in {path}", file=sys.stderr)


def main() -> None:
    arguments = parse_arguments()
    if not (arguments.build / "benchmarks" / "bin").is_dir():
        sys.exit(
            f"no contestants in {arguments.build}: cmake -S . -B {arguments.build} -DPTKIT_BENCHMARKS=ON"
            f" && cmake --build {arguments.build}"
        )
    facts = machine(arguments.build)
    if not arguments.json:
        print(", ".join(f"{key} {value}" for key, value in facts.items()))
    checks = Checks(arguments.build / "results" / "checks.json")
    found = recordings_of(arguments)
    report: dict[str, Any] = {"machine": facts}
    wanted = WHAT[:-1] if arguments.what == "all" else (arguments.what,)
    if "table" in wanted:
        report["table"] = run_table(arguments, checks, found)
    if "headline" in wanted:
        report["headline"] = run_headline(arguments, checks, found)
    if "threads" in wanted:
        report["threads"] = run_threads(arguments, found)
    if "growth" in wanted:
        report["growth"] = run_growth(arguments, found)
    if "parts" in wanted:
        report["parts"] = run_parts(arguments, found)
    if arguments.json:
        print(json.dumps(report, indent=2))
    keep(report, arguments.build)


if __name__ == "__main__":
    main()
