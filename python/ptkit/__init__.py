"""ptkit: capture and decode Intel Processor Trace into NumPy columns."""

from __future__ import annotations

__version__ = "0.1.0"
