"""Results for many items, several at the same time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

__all__ = ["mapped"]

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def mapped(function: Callable[[_Item], _Result], items: Iterable[_Item], threads: int) -> Iterator[_Result]:
    """Results of a function for each item, in the order of the items.

    Parameters
    ----------
    function : callable
        Threads call it: one that releases the GIL gains.
    items : iterable
        At most `threads` of them are ahead of what was taken.
    threads : int
    """
    waiting: deque[Future[_Result]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        for item in items:
            waiting.append(pool.submit(function, item))
            if len(waiting) > threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
