"""Tables that have to be equal in every column and row, and so their errors and gaps."""

from __future__ import annotations

from typing import Any

import numpy as np


def assert_same(some: Any, whole: Any) -> None:
    assert len(some) == len(whole)
    for name in whole.available:
        assert np.array_equal(some[name], whole[name]), name
    for side in ("errors", "gaps"):
        mine, others = getattr(some, side), getattr(whole, side)
        assert (mine is None) == (others is None)
        if others is not None:
            assert_same(mine, others)
