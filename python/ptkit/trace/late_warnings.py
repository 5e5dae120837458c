"""Warnings that come about after a trace was opened."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable

from ptkit.errors import PtkitWarning, TraceWarning

__all__ = ["LateWarnings"]


def _outside() -> int:
    """Level of the frame that called ptkit, for `warnings.warn` of the caller."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "ptkit":
        level, frame = level + 1, frame.f_back
    return level


def _warn_caller(sentence: str) -> None:
    """Warn of what the code says that called ptkit."""
    warnings.warn(sentence, PtkitWarning, stacklevel=_outside())


class LateWarnings:
    """Warnings of one kind, each said once.

    Attributes
    ----------
    warnings : tuple of TraceWarning
        Warnings that were given.
    report : callable
        Takes the sentence; by default it becomes a `PtkitWarning`.
    """

    def __init__(self) -> None:
        self.warnings: tuple[TraceWarning, ...] = ()
        self.report: Callable[[str], None] = _warn_caller

    def _warn(self, warning: TraceWarning) -> None:
        self.warnings += (warning,)
        self.report(warning)
