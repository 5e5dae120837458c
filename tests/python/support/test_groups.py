"""Groups of rows with equal keys."""

from __future__ import annotations

import numpy as np

from ptkit.support.groups import numbered


def test_numbers_are_those_of_unique_rows() -> None:
    random = np.random.default_rng(4)
    for rows in (0, 1, 2, 500):
        keys = [random.integers(-2, 3, rows) for _ in range(3)]
        numbers, first = numbered(keys)
        _, expected_first, expected = np.unique(
            np.stack(keys, axis=1), axis=0, return_index=True, return_inverse=True
        )
        np.testing.assert_array_equal(numbers, expected.reshape(-1))
        np.testing.assert_array_equal(first, expected_first)


def test_large_keys_stay_apart() -> None:
    numbers, first = numbered([np.array([2**64 - 1, 2**64 - 2, 2**64 - 1], np.uint64)])
    assert (numbers.tolist(), first.tolist()) == ([1, 0, 1], [1, 0])
