"""Coverage of recordings as sets: the code that ran, by identity of its file and RVA."""

from ptkit.analysis.coverage.files import CodeFile
from ptkit.analysis.coverage.reading import read_coverage
from ptkit.analysis.coverage.runs import CoverageRun
from ptkit.analysis.coverage.saved import is_saved_set
from ptkit.analysis.coverage.sets import Coverage

__all__ = ["CodeFile", "Coverage", "CoverageRun", "is_saved_set", "read_coverage"]
