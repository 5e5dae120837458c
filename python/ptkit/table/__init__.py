"""Tables: columns of NumPy arrays."""

from __future__ import annotations

from ptkit.table.columns import Columns
from ptkit.table.context import TableContext
from ptkit.table.runs import Runs
from ptkit.table.table import Table, concatenate

__all__ = ["Columns", "Runs", "Table", "TableContext", "concatenate"]
