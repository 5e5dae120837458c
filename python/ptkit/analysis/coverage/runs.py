"""Recordings that sets are made of."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ptkit.support.text import counted

__all__ = ["CoverageRun"]


@dataclass(frozen=True)
class CoverageRun:
    """A recording that a set was made of.

    Attributes
    ----------
    source : str
        Path or description of the recording.
    errors, gaps : int
        Of its selected part: where it is not known what ran.
    outside : int
        Instructions that ran in no file, such as JIT code: they are in no set.
    is_added, is_removed : bool
        Its elements were put into the set, or taken out of it; both, after ``^``.
    """

    source: str
    errors: int
    gaps: int
    outside: int
    is_added: bool = True
    is_removed: bool = False

    @property
    def loss(self) -> str:
        """What is not known, in words; empty: nothing."""
        parts = [
            counted(number, noun) for number, noun in ((self.errors, "error"), (self.gaps, "gap")) if number
        ]
        return " and ".join(parts)

    def as_operand(self, operator: str) -> CoverageRun:
        """The run in the result of ``a - b`` or ``a ^ b``, where it was one of `b`."""
        if operator == "-":
            return replace(self, is_added=self.is_removed, is_removed=self.is_added)
        if operator == "^":
            return replace(self, is_added=True, is_removed=True)
        return self
