"""Warnings that come about after a trace was opened."""

from __future__ import annotations

import sys
import warnings

from ptkit.errors import PtkitWarning

__all__ = ["warn_caller"]


def _outside() -> int:
    """Level of the frame that called ptkit, for `warnings.warn` of the caller."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "ptkit":
        level, frame = level + 1, frame.f_back
    return level


def warn_caller(sentence: str) -> None:
    """Warn of what the code says that called ptkit."""
    warnings.warn(sentence, PtkitWarning, stacklevel=_outside())
