"""Linux perf: whether its intel_pt, intel_bts and branch stacks can be used here."""

from __future__ import annotations

from dataclasses import replace

from ptkit import _core
from ptkit.capture.backend_probe import BackendProbe
from ptkit.capture.driver import NO_PT, NO_PT_REMEDY

__all__ = ["find"]


def find(answer: dict[str, str] | None = None, what: str = "packets") -> BackendProbe:
    """Ask the kernel.

    Parameters
    ----------
    answer : dict, optional
        What it said already, as ``_core.query_perf`` gives it.
    what : str
        What is to be recorded: ``"packets"``, ``"bts"`` or ``"branch_stack"``.
    """
    found = BackendProbe(**(_core.query_perf(what) if answer is None else answer))
    return replace(found, remedy=NO_PT_REMEDY) if found.missing == NO_PT else found
