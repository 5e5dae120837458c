"""The table of mappings: where files and other code lie in memory."""

from __future__ import annotations

import numpy as np

from ptkit import _core
from ptkit.support.schema import schema_of
from ptkit.table import Columns, Table, TableContext
from ptkit.table.cells import read_only

__all__ = ["mappings_table"]

_LAST_TSC = 2**64 - 1  # of what is not unmapped


def mappings_table(session: _core.Session, context: TableContext) -> Table:
    """Make the table; see `Trace.mappings`."""
    arrays = _core.mappings(session)
    schema = schema_of("mappings")
    known = {
        "file_known": arrays["file"] >= 0,
        "from_known": arrays["tsc_from"] != 0,
        "until_known": arrays["tsc_to"] != _LAST_TSC,
    }
    flags = np.zeros(len(arrays["address"]), np.uint8)
    for name, rows in known.items():
        flags[rows] |= schema.columns[name].mask
    columns = {name: read_only(array) for name, array in {**arrays, "flags": flags}.items()}
    return Table(Columns(schema, len(flags), columns, context=context))
