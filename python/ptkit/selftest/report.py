"""The report: what a reader elsewhere needs to judge this machine, without paths and names."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import Any

import ptkit
from ptkit.selftest.machine import describe_machine, without_names
from ptkit.selftest.outcome import FAILED, PASSED, UNAVAILABLE
from ptkit.selftest.session import Session, causes

__all__ = ["ALL_PASSED", "NOTHING_TESTED", "SOME_FAILED", "make_report", "status_of"]

ALL_PASSED, SOME_FAILED, NOTHING_TESTED = 0, 1, 3


def status_of(session: Session) -> int:
    """Return the exit status: a failure, or no tracing by the processor was checked as wanted, or neither."""
    outcomes = session.outcomes.values()
    if any(outcome.result == FAILED for outcome in outcomes):
        return SOME_FAILED
    wanted = any(backend != "step" for backend in session.plan.backends)
    traced = any(outcome.result == PASSED and outcome.backend != "step" for outcome in outcomes)
    return NOTHING_TESTED if wanted and not traced else ALL_PASSED


def make_report(session: Session) -> dict[str, Any]:
    """Return the report as plain values, for JSON."""
    outcomes = list(session.outcomes.values())
    counts = Counter(outcome.result for outcome in outcomes)
    backends = [
        {"name": one.name, "available": one.available, "missing": without_names(one.missing)}
        for one in ptkit.capture.probe()
    ]
    return {
        "version": ptkit.__version__,
        "machine": describe_machine(),
        "backends": backends,
        "cpu": session.plan.processor,
        "seed": session.plan.seed,
        "rounds": session.rounds,
        "checks": [asdict(outcome) for outcome in outcomes],
        "passed": counts[PASSED],
        "failed": counts[FAILED],
        "unavailable": counts[UNAVAILABLE],
        "causes": [f"{outcome.backend} {outcome.check}" for outcome in causes(outcomes)],
    }
