"""C programs of several files, with functions that are inlined into each other."""

from __future__ import annotations

import random

INLINE = "static inline __attribute__((always_inline)) int"
# In the middle of functions, so that these have code of two files.
PART = "  sink = x;\n  x += sink * 3;\n"


def inlining_sources(seed: int, functions: int) -> dict[str, str]:
    """Files by name: `start` is in the first one, which calls none of the others' functions."""
    chance = random.Random(seed)
    header = ["extern volatile int sink;"]
    for number in range(6):
        header += _function(f"{INLINE} low{number}(int x)", chance, [])
    lows = [f"low{number}" for number in range(6)]
    middle = ['#include "low.h"']
    for number in range(6):
        middle += _function(f"{INLINE} mid{number}(int x)", chance, lows)
    mids = [f"mid{number}" for number in range(6)]
    sources = {"low.h": "\n".join(header) + "\n", "part.inc": PART, "mid.h": "\n".join(middle) + "\n"}
    files = 4
    for file in range(files):
        text = ['#include "mid.h"']
        if file == 0:
            text += ["volatile int sink;", "__attribute__((naked)) int start(void) {", LOOP, "}"]
        tops = []
        for number in range(2):
            text += _function(f"{INLINE} top{number}(int x)", chance, [*mids, *lows])
            tops.append(f"top{number}")
        for number in range(functions // files):
            text += _function(f"int out{file}_{number}(int x)", chance, [*tops, *mids, *lows])
        sources[f"file{file}.c"] = "\n".join(text) + "\n"
    return sources


# The loop program of the tests.
LOOP = '  __asm__(".byte 0xff, 0xc9, 0x75, 0xfc, 0xff, 0xe0");'


def _function(head: str, chance: random.Random, callees: list[str]) -> list[str]:
    lines = [f"{head} {{"]
    for _ in range(chance.randrange(2, 6)):
        kind = chance.randrange(5)
        if kind == 0:
            lines += [f"  if (x > {chance.randrange(50)})", f"    x += {chance.randrange(2, 9)};"]
        elif kind == 1 and callees:
            lines += [
                f"  for (int i = 0; i < {chance.randrange(2, 6)}; i++)",
                f"    x -= {_call(chance, callees)};",
            ]
        elif kind == 2:
            lines += ['#include "part.inc"'] if chance.randrange(4) == 0 else ["  sink = x ^ 5;"]
        elif callees:
            lines += [f"  x ^= {_call(chance, callees)} +", f"       {_call(chance, callees)};"]
        else:
            lines += [f"  x = x * {chance.randrange(3, 99)} + sink;"]
    return [*lines, "  return x;", "}"]


def _call(chance: random.Random, callees: list[str]) -> str:
    return f"{chance.choice(callees)}(x + {chance.randrange(9)})"
