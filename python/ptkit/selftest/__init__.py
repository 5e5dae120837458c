"""Checks of a processor's tracing: small programs, recorded by each back end and compared with single steps.

Provisional: `ptkit selftest` is the interface.
"""

from ptkit.selftest.checks import BACKENDS
from ptkit.selftest.outcome import FAILED, PASSED, UNAVAILABLE, Outcome
from ptkit.selftest.report import ALL_PASSED, NOTHING_TESTED, SOME_FAILED, make_report, status_of
from ptkit.selftest.session import Plan, Session, causes

__all__ = [
    "ALL_PASSED",
    "BACKENDS",
    "FAILED",
    "NOTHING_TESTED",
    "PASSED",
    "SOME_FAILED",
    "UNAVAILABLE",
    "Outcome",
    "Plan",
    "Session",
    "causes",
    "make_report",
    "status_of",
]
