"""Tables: columns of NumPy arrays."""

from __future__ import annotations

from ptkit.table.runs import Runs
from ptkit.table.table import Table, TableContext, concatenate

__all__ = ["Runs", "Table", "TableContext", "concatenate"]
