"""Names of the addresses of rows, as text for lines."""

from __future__ import annotations

from ptkit.table import Table
from ptkit.table.derived import symbol_column

__all__ = ["row_names"]


def row_names(part: Table, address: str) -> list[str]:
    """Name the addresses of a column, each in the address space and at the time of its row.

    Parameters
    ----------
    part : Table
        Has ``space``, and the times of its rows if there are any.
    address : str
        A column of code addresses.

    Returns
    -------
    list of str
        ``function+0x10``, or ``[file]+0x1010`` where there is no symbol, or an empty text.
    """
    symbol = symbol_column(address)
    functions, offsets = part[symbol].tolist(), part[f"{symbol}_offset"].tolist()
    texts = [
        f"{name}+{offset:#x}" if name and offset else name or ""
        for name, offset in zip(functions, offsets, strict=True)
    ]
    if None in functions:
        module = symbol.removesuffix("symbol") + "module"
        files, offsets = part[module].tolist(), part[f"{module}_offset"].tolist()
        for row, file in enumerate(files):
            if functions[row] is None and file is not None:
                texts[row] = f"[{file}]+{offsets[row]:#x}"
    return texts
