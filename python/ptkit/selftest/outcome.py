"""Results of checks."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["FAILED", "PASSED", "UNAVAILABLE", "CheckFailed", "Outcome", "Unavailable"]

PASSED, FAILED, UNAVAILABLE = "passed", "FAILED", "unavailable"


class CheckFailed(Exception):
    """The trace contradicts what was executed, or itself; the message says how."""


class Unavailable(Exception):
    """The check cannot be made on this system; the message has the reason."""


@dataclass(frozen=True)
class Outcome:
    """The result of a check.

    Attributes
    ----------
    check : str
        Its name.
    backend : str
        The back end that recorded.
    result : str
        `PASSED`, `FAILED` or `UNAVAILABLE`.
    detail : str
        Amount compared, first difference, or reason why it was not done.
    suggests : str
        Where to look after a failure; empty otherwise.
    follows : tuple of str
        Failures of other checks of this back end that may have caused this one.
    seconds : float
    """

    check: str
    backend: str
    result: str
    detail: str
    suggests: str = ""
    follows: tuple[str, ...] = ()
    seconds: float = 0.0
