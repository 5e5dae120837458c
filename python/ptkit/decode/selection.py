"""The rows that a query selects, checked, as arguments of the core."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import TYPE_CHECKING, Any

import numpy as np

from ptkit import _core
from ptkit.decode.scope import Range, Ranges, Scope
from ptkit.errors import ConfigError
from ptkit.support.arguments import LAST_ADDRESS, flag, integer, member, several

if TYPE_CHECKING:
    from ptkit.decode.query import Query

# Values that select nothing: an empty list would select everything.
_NOWHERE = (1, 0, None)
_NO_SPACE = 2**32 - 1


def selection_of(query: Query, scope: Scope, table: str) -> dict[str, Any]:
    """The selection of a query of a table, without its choice of streams.

    Raises
    ------
    ConfigError, SymbolError
        If an argument is out of range, or names what the trace does not have.
    """
    selection: dict[str, Any] = {}
    ips = _addresses(query, scope)
    if ips is not None:
        selection["ips"] = ips or [_NOWHERE]
    if query.get("tid") is not None:
        selection["tids"] = sorted(scope.tids(query["tid"]))
    if query.get("pid") is not None:
        selection["pids"] = sorted(scope.pids(query["pid"]))
    spaces = scope.spaces(query)
    if spaces is not None:
        selection["spaces"] = sorted(spaces) or [_NO_SPACE]
    if query.get("time") is not None:
        selection["time"] = _time(query["time"], scope)
    if query.get("kind") is not None:
        if table == "events":
            selection["event_kinds"] = _kinds(query["kind"], _core.EventKind)
        else:
            selection["kinds"] = _kinds(query["kind"], _core.BranchKind)
    if query.get("taken") is not None:
        selection["taken"] = flag("taken", query["taken"])
    return selection


def bind(selection: dict[str, Any], bound: dict[str, Any]) -> dict[str, Any]:
    """Select among the rows that are selected already, by time and address."""
    both = {**bound, **selection}
    if "time" in bound and "time" in selection:
        (a, b), (c, d) = bound["time"], selection["time"]
        both["time"] = max(a, c), max(min(b, d), max(a, c))
    if "ips" in bound and "ips" in selection:
        both["ips"] = _intersection(selection["ips"], bound["ips"]) or [_NOWHERE]
    return both


def by_space(selection: dict[str, Any]) -> bool:
    """Whether rows are selected by address space."""
    return any(space is not None for _, _, space in selection.get("ips", ()))


def _addresses(query: Query, scope: Scope) -> list[Range] | None:
    """Addresses that all of `ip`, `symbol` and `module` of a query select; None: it has none of them."""
    found = []
    if query.get("ip") is not None:
        found.append(_ranges(query["ip"]))
    if query.get("symbol") is not None:
        found.append(_named("symbol", query["symbol"], scope.symbol_ranges))
    if query.get("module") is not None:
        found.append(_named("module", query["module"], scope.module_ranges))
    if not found:
        return None
    ips = found[0]
    for others in found[1:]:
        ips = _intersection(ips, others)
    return ips


def _named(argument: str, value: Any, ranges: Ranges) -> list[Range]:
    """Addresses of one name or of several."""
    names = several(argument, value, str, "a name, or a list of names")
    if not names:
        raise ConfigError(f"{argument}={value!r} selects nothing; leave it out to select everything")
    return [found for name in names for found in ranges(name)]


def _ranges(value: Any) -> list[Range]:
    """Inclusive ranges of addresses and [low, high) pairs, in every space."""
    items: Any = value.tolist() if isinstance(value, np.ndarray) else value
    if isinstance(items, (tuple, list)) and len(items) == 2 and all(map(_is_integer, items)):
        items = [items]
    if _is_integer(items):
        items = [items]
    if isinstance(items, (str, bytes)) or not isinstance(items, Iterable):
        raise _no_addresses(value)
    ranges = [_range(item, value) for item in items]
    if not ranges:
        raise ConfigError(f"ip={value!r} selects nothing; leave it out to select everything")
    return ranges


def _range(item: Any, value: Any) -> Range:
    if _is_integer(item):
        address = integer("ip", item, 0, LAST_ADDRESS)
        return address, address, None
    try:
        low, high = item
    except (TypeError, ValueError):
        raise _no_addresses(value) from None
    low, high = integer("ip", low, 0, LAST_ADDRESS), integer("ip", high, 0, LAST_ADDRESS + 1)
    if low >= high:
        raise ConfigError(f"ip: [{low:#x}, {high:#x}) is empty")
    return low, high - 1, None


def _is_integer(value: Any) -> bool:
    return hasattr(value, "__index__")


def _no_addresses(value: Any) -> ConfigError:
    return ConfigError(
        f"ip={value!r} must be an address, (low, high), or a list of these; names go to symbol="
    )


def _intersection(some: list[Range], others: list[Range]) -> list[Range]:
    """Meet ranges with others."""
    both = [
        (max(a, c), min(b, d), here if there is None else there)
        for a, b, here in some
        for c, d, there in others
        if here is None or there is None or here == there
    ]
    return [found for found in both if found[0] <= found[1]]


def _time(value: Any, scope: Scope) -> tuple[int, int]:
    try:
        begin, end = value
    except (TypeError, ValueError):
        raise ConfigError(f"time={value!r} must be (t0, t1) in TSC ticks") from None
    hint = "(t0, t1) are TSC ticks; None leaves an end open; trace.between(seconds=...) takes seconds"
    low = 0 if begin is None else integer("time", begin, 0, LAST_ADDRESS, floats=True, hint=hint)
    high = LAST_ADDRESS if end is None else integer("time", end, 0, LAST_ADDRESS, floats=True, hint=hint)
    if low > high:
        raise ConfigError(f"time={value!r}: t0 must not be above t1")
    scope.check_time(low, high)
    return low, high


def _kinds(value: Any, enum: type[IntEnum]) -> int:
    """Kinds of branches or events as bits."""
    bits = 0
    for kind in [value] if isinstance(value, str) or not isinstance(value, Iterable) else value:
        if isinstance(kind, str):
            bits |= 1 << member("kind", enum, kind)
        else:
            bits |= 1 << integer("kind", kind, 0, max(enum), hint=f"see ptkit.{enum.__name__}")
    return bits
