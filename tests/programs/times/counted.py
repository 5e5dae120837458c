"""Calls of every kind, counted by sys.setprofile if there is an argument: the file that gets the counts."""

import json
import sys
import threading
from collections import Counter
from pathlib import Path


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def even(n):
    return n == 0 or odd(n - 1)


def odd(n):
    return n != 0 and even(n - 1)


def numbers(n):
    for i in range(n):  # noqa: UP028
        yield i


def chained(n):
    yield from numbers(n)
    yield from numbers(n)


def echo():
    got = None
    while True:
        got = yield got


class Shape:
    made = 0

    def __init__(self, size):
        self.size = size
        Shape.made += 1

    def __lt__(self, other):
        return self.size < other.size

    def __call__(self, by):
        return self.size * by

    @property
    def area(self):
        return self.size**2

    @staticmethod
    def unit():
        return Shape(1)

    @classmethod
    def double(cls, of):
        return cls(of.size * 2)


def key_of(shape):
    return -shape.size


def raises(n):
    if n == 0:
        raise ValueError("bottom")
    raises(n - 1)


def catches():
    try:
        raises(5)
    except ValueError:
        return recovers()
    return None


def recovers():
    return 1


async def awaited(n):
    return n + 1


async def awaits():
    return await awaited(1) + await awaited(2)


def drive(coroutine):
    try:
        while True:
            coroutine.send(None)
    except StopIteration as stop:
        return stop.value


def decorated(function):
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)

    return wrapper


@decorated
def wrapped(a, b=2):
    return a + b


def work(n):
    return sum(fib(i) for i in range(n))


def main():
    fib(9)
    even(20)
    assert sum(numbers(10)) == 45
    assert list(chained(3)) == [0, 1, 2, 0, 1, 2]
    talk = echo()
    next(talk)
    assert [talk.send(i) for i in range(4)] == [0, 1, 2, 3]
    talk.close()
    numbers(3)  # is made, and never asked for a number
    shapes = [Shape(i * 7 % 5) for i in range(8)]
    sorted(shapes)
    sorted(shapes, key=key_of)
    max(shapes, key=lambda shape: shape.size)
    areas = map(lambda shape: shape.area, shapes)  # noqa: C417
    assert sum(areas) == sum(shape(shape.size) for shape in shapes)
    Shape.double(Shape.unit())
    assert catches() == 1
    assert drive(awaits()) == 5
    assert wrapped(1) + wrapped(1, b=3) == 7
    assert {i: fib(i) for i in range(4)}[3] == 2
    threads = [threading.Thread(target=work, args=(n,)) for n in (4, 6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def counted(path):
    counts = Counter()
    lock = threading.Lock()

    def on_event(frame, event, argument):
        if event == "call" and frame.f_code.co_filename == __file__:
            with lock:
                counts[frame.f_code.co_qualname] += 1

    threading.setprofile(on_event)
    sys.setprofile(on_event)
    main()
    sys.setprofile(None)
    Path(path).write_text(json.dumps(counts))


if len(sys.argv) > 1:
    counted(sys.argv[1])
else:
    main()
