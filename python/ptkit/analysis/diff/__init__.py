"""Two runs: where their threads part."""

from ptkit.analysis.diff.difference import Difference
from ptkit.analysis.diff.strands import Run

__all__ = ["Difference", "Run"]
