"""Linux perf's intel_pt: whether it can be used here."""

from __future__ import annotations

from ptkit import _core
from ptkit.capture.driver import Found

__all__ = ["find"]


def find(answer: dict[str, str] | None = None) -> Found:
    """Ask the kernel.

    Parameters
    ----------
    answer : dict, optional
        What it said already, as ``_core.ask_perf`` gives it.
    """
    return Found(**(_core.ask_perf() if answer is None else answer))
