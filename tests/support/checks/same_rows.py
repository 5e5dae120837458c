"""Rows of tables; tables that have to be equal in every column and row, and so their errors and gaps."""

from __future__ import annotations

from typing import Any

import numpy as np


def rows_of(table: Any, *names: str) -> list[tuple[Any, ...]]:
    """Rows with the named columns, or with all of them."""
    return list(zip(*(table.named(name) for name in names or table.columns), strict=True))


def assert_same(some: Any, whole: Any) -> None:
    assert len(some) == len(whole)
    for name in whole.available:
        assert np.array_equal(some[name], whole[name]), name
    for side in ("errors", "gaps"):
        mine, others = getattr(some, side), getattr(whole, side)
        assert (mine is None) == (others is None)
        if others is not None:
            assert_same(mine, others)
