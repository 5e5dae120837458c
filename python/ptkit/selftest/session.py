"""Runs checks: once, or again and again with other programs until a time is over."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from ptkit.capture import Backend, probe
from ptkit.errors import ConfigError, PtkitError
from ptkit.selftest.bench import Bench, Truths
from ptkit.selftest.checks import BACKENDS, CHECKS, Check
from ptkit.selftest.machine import without_names
from ptkit.selftest.outcome import FAILED, PASSED, UNAVAILABLE, CheckFailed, Outcome, Unavailable

__all__ = ["Plan", "Session", "causes"]


@dataclass(frozen=True)
class Plan:
    """Checks to make.

    Attributes
    ----------
    backends : tuple of str
    checks : tuple of str
        Names; none: all.
    cpu : int, optional
        The processor that programs run on; None: the first one that this process may use.
    seconds : float
        Checks are repeated with other programs until so many seconds are over; 0: once.
    seed : int
        Of the first programs.
    """

    backends: tuple[str, ...] = BACKENDS
    checks: tuple[str, ...] = ()
    cpu: int | None = None
    seconds: float = 0.0
    seed: int = 1

    def __post_init__(self) -> None:
        """Check the values.

        Raises
        ------
        ConfigError
            If there is no such back end, check or processor.
        """
        known = {check.name for backend in self.backends for check in CHECKS[backend]}
        unknown = sorted(set(self.checks) - known)
        if unknown:
            raise ConfigError(
                f"check: {', '.join(self.backends)} have no check {unknown[0]!r}; there are"
                f" {', '.join(sorted(known))}"
            )
        able = os.sched_getaffinity(0)
        if self.cpu is not None and self.cpu not in able:
            raise ConfigError(
                f"cpu: this process may not use processor {self.cpu}; it may use {sorted(able)}"
            )

    @property
    def processor(self) -> int:
        """The number of the processor."""
        return min(os.sched_getaffinity(0)) if self.cpu is None else self.cpu


@dataclass
class Session:
    """A run of the checks.

    Attributes
    ----------
    plan : Plan
    show : callable
        Called with each outcome of the first round, and with each failure after that.
    outcomes : dict
        By back end and check: the first failure, or else the last outcome.
    rounds : int
    truths : dict
        Instructions that the last program of each name executes by single steps.
    """

    plan: Plan
    show: Callable[[Outcome], object]
    outcomes: dict[tuple[str, str], Outcome] = field(default_factory=dict)
    rounds: int = 0
    truths: Truths = field(default_factory=dict)

    def run(self) -> None:
        """Make all checks.

        Raises
        ------
        ConfigError
            If programs cannot run in the folder for temporary files.
        """
        end = time.monotonic() + self.plan.seconds
        with TemporaryDirectory(prefix="ptkit-selftest-") as folder:
            _expect_executable(Path(folder))
            while self.rounds == 0 or (time.monotonic() < end and self._open()):
                self._round(Path(folder))
                self.rounds += 1

    def _open(self) -> Collection[tuple[str, str]]:
        """Checks that a further round makes: those that have passed."""
        return [key for key, outcome in self.outcomes.items() if outcome.result == PASSED]

    def _round(self, folder: Path) -> None:
        open_checks = set(self._open())
        there = {backend.name: backend for backend in probe()}
        for name in self.plan.backends:
            backend = there[name]
            bench = Bench(
                backend.name, self.plan.processor, folder, self.plan.seed + self.rounds, self.truths
            )
            for check in self._wanted(backend.name):
                key = (backend.name, check.name)
                if self.rounds == 0 or key in open_checks:
                    self._note(key, self._make(check, backend, bench))

    def _wanted(self, backend: str) -> Iterator[Check]:
        for check in CHECKS[backend]:
            if not self.plan.checks or check.name in self.plan.checks:
                yield check

    def _note(self, key: tuple[str, str], outcome: Outcome) -> None:
        if outcome.result == FAILED and self.rounds:
            seed = self.plan.seed + self.rounds
            outcome = replace(outcome, detail=f"{outcome.detail} (round {self.rounds + 1}, --seed {seed})")
        if not self.rounds or outcome.result != UNAVAILABLE:
            self.outcomes[key] = outcome
        if not self.rounds or outcome.result == FAILED:
            self.show(outcome)

    def _make(self, check: Check, backend: Backend, bench: Bench) -> Outcome:
        begin = time.monotonic()
        result, detail = _result_of(check, backend, bench)
        failed = result == FAILED
        others = [
            name for name in check.follows
            if failed and self.outcomes.get((backend.name, name), _UNKNOWN).result == FAILED
        ]  # fmt: skip
        return Outcome(
            check.name,
            backend.name,
            result,
            without_names(detail),
            check.suggests if failed else "",
            tuple(others),
            round(time.monotonic() - begin, 3),
        )


def _expect_executable(folder: Path) -> None:
    if os.statvfs(folder).f_flag & os.ST_NOEXEC:
        raise ConfigError(
            f"{folder.parent}: programs may not run there (noexec); set TMPDIR to another folder"
        )


_UNKNOWN = Outcome("", "", UNAVAILABLE, "")


def _result_of(check: Check, backend: Backend, bench: Bench) -> tuple[str, str]:
    able = backend.recording([check.records])
    if not able.available:
        return UNAVAILABLE, able.missing
    try:
        return PASSED, check.run(bench)
    except Unavailable as reason:
        return UNAVAILABLE, str(reason)
    except CheckFailed as failure:
        return FAILED, str(failure)
    except (PtkitError, OSError) as error:
        return FAILED, f"the check could not be made: {error}"


def causes(outcomes: Collection[Outcome]) -> list[Outcome]:
    """Return the failures that no other failure explains."""
    return [outcome for outcome in outcomes if outcome.result == FAILED and not outcome.follows]
