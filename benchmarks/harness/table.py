"""The main table: every question, contestants side by side."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from harness.contest import Checks, Contestant, Timing, measure
from harness.perf_data import perf_data_of
from harness.questions import Question

_OTHERS = ("libxdc", "iptr")


def _here(contestants: Sequence[Contestant], build: Path) -> tuple[Contestant, ...]:
    return tuple(one for one in contestants if not one.reason_to_leave_out(build))


def _left_out(question: Question, build: Path, trace: Path, checks: Checks) -> dict[str, str]:
    """Contestants that are not timed, and why. Other decoders refuse some traces."""
    reasons = {one.name: one.reason_to_leave_out(build) for one in question.timed}
    for one in question.timed:
        if one.variable and not reasons[one.name]:
            reasons[one.name] = checks.ask(one, build, trace).get("failure", "")
    return {name: reason for name, reason in reasons.items() if reason}


def ask(
    question: Question, build: Path, trace: Path, checks: Checks, *, rounds: int, seconds: float
) -> dict[str, Any] | None:
    """Check, then time. None: the trace has no rows."""
    if question.perf_data:
        trace = perf_data_of(trace, build)
    result = [checks.agree(_here(group, build), build, trace) for group in question.groups]
    if result[0]["rows"] == 0:
        return None
    left_out = _left_out(question, build, trace, checks)
    timed = tuple(one for one in question.timed if one.name not in left_out)
    timings = measure(timed, build, trace, rounds=rounds, seconds=seconds, first=question.first)
    return {
        "question": question.name,
        "what": question.what,
        "digest": result[0]["digest"],
        "errors": result[0]["errors"],
        "rows": timings[0].rows,
        "ratio": timings[0].megabytes_per_second / timings[-1].megabytes_per_second,
        "least": question.least,
        "stretch": question.stretch,
        "timings": [asdict(timing) for timing in timings],
        "left_out": left_out,
    }


def show(result: dict[str, Any]) -> None:
    """Print the figures of a question."""
    timings = [Timing(**timing) for timing in result["timings"]]
    last = timings[-1]
    print(
        f"\n{result['question']}: {result['what']}; "
        f"{result['rows']:,} rows, {result['errors']} errors, all agree"
    )
    print(f"  {'':24} {'MB/s':>9} {'M rows/s':>9} {'cpu ms':>10} {'median':>10} {'wall ms':>10} {'x':>7}")
    for timing in timings:
        speed = timing.megabytes_per_second
        rows = f"{timing.rows / timing.cpu / 1e6:.1f}" if timing.rows else ""
        ratio = "" if timing is last else f"{speed / last.megabytes_per_second:.1f}"
        print(
            f"  {timing.contestant:24} {speed:9.1f} {rows:>9}"
            f" {timing.cpu * 1e3:10.3f} {timing.cpu_median * 1e3:10.3f} {timing.wall * 1e3:10.3f} {ratio:>7}"
        )
    for name, reason in result["left_out"].items():
        print(f"  {name:24} left out: {reason}")


def summary(reports: Sequence[dict[str, Any]]) -> None:
    """Print ratios to the last contestant by trace, and the goals."""
    names = list(dict.fromkeys(result["question"] for report in reports for result in report["questions"]))
    goal = "at least, stretch"
    width = max(len(name) for name in (goal, *(report["name"] for report in reports)))
    print("\ntimes as fast as the last contestant of each question (libipt, perf, or another way of ours)")
    print(f"{'':{width}}" + "".join(f"{name:>14}" for name in names))
    for report in reports:
        found = {result["question"]: result for result in report["questions"]}
        cells = [f"{found[name]['ratio']:.1f}" if name in found else "-" for name in names]
        print(f"{report['name']:{width}}" + "".join(f"{cell:>14}" for cell in cells))
    goals = {result["question"]: result for report in reports for result in report["questions"]}
    cells = [f"{goals[n]['least']}, {goals[n]['stretch']}" if goals[n]["least"] else "-" for n in names]
    print(f"{goal:{width}}" + "".join(f"{cell:>14}" for cell in cells))
    results = [result for report in reports for result in report["questions"]]
    for name, peer in dict.fromkeys((one["question"], peer) for one in results for peer in _peers(one)):
        ratios = [_peers(one)[peer] for one in results if one["question"] == name and peer in _peers(one)]
        print(
            f"{name}, {peer}: median {statistics.median(ratios):.2f}, "
            f"{min(ratios):.2f} to {max(ratios):.2f}, of {len(ratios)}"
        )


def _peers(result: dict[str, Any]) -> dict[str, float]:
    """How many times as fast as each other decoder before the last contestant, in each way of ours."""
    timings = result["timings"][:-1]
    own = [one for one in timings if one["contestant"].split()[0] == timings[0]["contestant"]]
    others = [one for one in timings if one["contestant"] in _OTHERS]
    return {
        f"{one['contestant']} against {other['contestant']}": other["cpu"] / one["cpu"]
        for one in own
        for other in others
    }
