"""A run that parts in one function: INPUT decides."""

import os


def even(number: int) -> int:
    return number // 2


def odd(number: int) -> int:
    return number * 3 + 1


def decide(number: int) -> int:
    if number % 2 == 0:  # PARTS decide
        return even(number)
    return odd(number)


decide(int(os.environ["INPUT"]))
