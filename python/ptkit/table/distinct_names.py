"""Names of functions for one printed table: short ones, with what tells equal ones apart."""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import NamedTuple

from ptkit import _core

__all__ = ["distinct_names"]

_TOKEN = re.compile(r"\w+|::|.", re.DOTALL)
_UNCUT = re.compile(r"->|\[|^<|@|\(anonymous")  # in names that are not cut
_UNCUT_OUTSIDE = re.compile(r"operator|\{")  # outside of arguments
_CLOSING = {"<": ">", "(": ")"}
_LONG = 20  # of what stands for an argument


class _Parts(NamedTuple):
    """A full name without its return type: the texts around its arguments, and the arguments."""

    texts: tuple[str, ...]  # one more than arguments; brackets are in the texts
    arguments: tuple[str, ...]
    returns: bool  # whether a return type was left out


def distinct_names(names: Iterable[str | None]) -> dict[str, str]:
    """Printed names by full names: ``Map<int*>::insert`` and ``Map<char*>::insert``, but else short ones.

    A ``*`` stands for what is left out, so that what is printed is a pattern of the function. Functions that
    no short pattern tells apart have their full names.
    """
    full = list(dict.fromkeys(name for name in names if name))
    groups: dict[str, list[str]] = {}
    for name, short in zip(full, _core.short_names(full), strict=True):
        groups.setdefault(short, []).append(name)
    shown: dict[str, str] = {}
    for short, group in groups.items():
        forms = [short] if len(group) == 1 else _apart(group)
        shown.update(zip(group, forms, strict=True))
    return shown


def _apart(names: list[str]) -> list[str]:
    """Short patterns that match one of the names each, or the names."""
    found = [_parts(name) for name in names]
    parts = [one for one in found if one is not None]
    if len(parts) < len(names) or len({one.texts for one in parts}) > 1:
        return names
    numbers = range(len(parts[0].arguments))
    differing = [at for at in numbers if len({one.arguments[at] for one in parts}) > 1]
    for chosen in ([at] for at in differing):
        if len({one.arguments[chosen[0]] for one in parts}) == len(names):
            break
    else:
        chosen = differing
    cut = {at: _cut([one.arguments[at] for one in parts]) for at in chosen}
    forms = [_form(one, {at: cut[at][row] for at in chosen}) for row, one in enumerate(parts)]
    wholes = [_form(one, dict(enumerate(one.arguments))) for one in parts]
    bare = [_form(one, dict(enumerate(one.arguments[:-1]))) for one in parts]
    for form, whole, without in zip(forms, wholes, bare, strict=True):
        others = [one for one in (*wholes, *bare) if fnmatchcase(one, form)]
        if not {*others} or not {*others} <= {whole, without}:
            return names
    return forms


def _form(parts: _Parts, arguments: dict[int, str]) -> str:
    """A name with some of its arguments: the last ones are parameters, which may be left out."""
    last = len(parts.arguments) - 1
    has_parameters = last in arguments
    text = "*" if has_parameters and parts.returns else ""
    for at, before in enumerate(parts.texts[:-1]):
        if at == last and not has_parameters:
            return text + before[:-1]
        text += before + arguments.get(at, "*")
    return text + parts.texts[-1]


def _parts(name: str) -> _Parts | None:
    """None: the name has another form than ``type name<...>::name<...>(...) const``."""
    if _UNCUT.search(name):
        return None
    texts: list[str] = []
    arguments: list[str] = []
    begin = at = 0
    first = 0  # argument that is after the return type
    while at < len(name):
        if name[at] in _CLOSING:
            end = _end(name, at)
            if end is None:
                return None
            texts.append(name[begin : at + 1])
            arguments.append(name[at + 1 : end])
            at = begin = end
        at += 1
    texts.append(name[begin:])
    is_function = bool(arguments) and texts[-2].endswith("(") and texts[-1].startswith(")")
    if not is_function or any(map(_UNCUT_OUTSIDE.search, texts)):
        return None
    for number, text in enumerate(texts[:-1]):
        if " " in text:
            first, texts[number] = number, text.rpartition(" ")[2]
    return _Parts(tuple(texts[first:]), tuple(arguments[first:]), not name.startswith(texts[first]))


def _end(name: str, at: int) -> int | None:
    """Where the bracket that opens at a position is closed."""
    closing: list[str] = []
    for end in range(at, len(name)):
        letter = name[end]
        if letter in _CLOSING:
            closing.append(_CLOSING[letter])
        elif letter in _CLOSING.values():
            if closing.pop() != letter:
                return None
            if not closing:
                return end
    return None


def _cut(arguments: list[str]) -> list[str]:
    """Each list of arguments up to the first type that no other list begins with, or from the last one on."""
    tokens = [_TOKEN.findall(one) for one in arguments]
    return [_begin(own, [other for other in tokens if other != own]) for own in tokens]


def _begin(own: list[str], others: list[list[str]]) -> str:
    for end in range(1, len(own)):
        is_word = own[end - 1].isidentifier() and own[end] != "::"
        if is_word and not any(other[:end] == own[:end] for other in others):
            head = "".join(own[:end])
            last = own[end - 1]
            if len(head) > _LONG and not any(last in other for other in others):
                head = f"*{last}"
            return f"{head}*"
    whole = "".join(own)
    return whole if len(whole) <= _LONG else _tail(own, others)


def _tail(own: list[str], others: list[list[str]]) -> str:
    """The shortest end that no other list has: ``*long`` of ``basic_string<...>, long``."""
    for count in range(1, len(own)):
        if not any(other[-count:] == own[-count:] for other in others):
            return f"*{''.join(own[-count:])}"
    return "".join(own)
