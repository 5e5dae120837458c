"""Pages that show whole runs: `Trace.view` and ``ptkit view``."""

from __future__ import annotations

from ptkit.view.document import Document, make_document
from ptkit.view.page import Page
from ptkit.view.run import Run, ViewTrace, read_run

__all__ = ["Document", "Page", "Run", "ViewTrace", "make_document", "read_run"]
