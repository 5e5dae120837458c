"""The flaky case: what separates failing from passing recordings of one command."""

from ptkit.analysis.suspects.find import Source, find_suspects
from ptkit.analysis.suspects.measure import Chance
from ptkit.analysis.suspects.result import LeftOut, Suspects

__all__ = ["Chance", "LeftOut", "Source", "Suspects", "find_suspects"]
