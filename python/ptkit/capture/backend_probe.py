"""The result of looking for a back end."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["BackendProbe"]


@dataclass(frozen=True)
class BackendProbe:
    """What the driver, or perf, can do here, or why it cannot be used.

    Attributes
    ----------
    missing, remedy : str
        Why it does not work on this system, and what to do; empty if it does.
    abilities : str
        What it can do here, as text.
    """

    missing: str = ""
    remedy: str = ""
    abilities: str = ""
