"""Triggers: an event in the program, and the action of the recorder."""

from __future__ import annotations

import os
import re
import signal as _signal
from dataclasses import dataclass
from typing import Any

from ptkit.capture.code_locations import NAME, file_name, number_or_name, unquoted
from ptkit.errors import ConfigError
from ptkit.support.arguments import LAST_ADDRESS, integer, several

__all__ = ["Trigger", "signal_number", "triggers_of"]

_ACTIONS = ("start", "stop", "snapshot")
_EVENTS = ("symbol", "address", "signal")
_SYNTAX = (
    "write start|stop|snapshot at SYMBOL|ADDRESS [xCOUNT] [@ FILE], or start|stop|snapshot on SIGNAL [xCOUNT]"
)
_ONE = re.compile(
    rf"""\s*(?P<action>[a-z]+)\s+(?P<how>at|on)\s+(?P<what>{NAME})
    (?:\s+x\s*(?P<count>\w+))?
    (?:\s*@\s*(?P<file>"[^"]+"|\S+))?\s*$""",
    re.VERBOSE,
)


def signal_number(signal: str | int) -> int:
    """Read a signal: ``"USR1"``, ``"SIGUSR1"`` or its number.

    Raises
    ------
    ConfigError
        If no signal has that name or number.
    """
    if isinstance(signal, str) and not signal.isdigit():
        name = "SIG" + signal.upper().removeprefix("SIG")
        if name in _signal.Signals.__members__:
            return int(_signal.Signals[name])
        raise ConfigError(f"signal: there is no signal {signal!r}; `kill -l` lists them")
    return integer("signal", int(signal) if isinstance(signal, str) else signal, 1, int(_signal.SIGRTMAX))


@dataclass(frozen=True)
class Trigger:
    """What the recorder does at the `count`-th event. Made by `symbol`, `address` and `signal`.

    Attributes
    ----------
    event : str
        ``"symbol"``, ``"address"``: a function or address is reached; ``"signal"``: the program gets one.
    action : str
        ``"start"``: recording is off until then, on a signal some hundred instructions longer; ``"stop"``:
        recording ends, within a dozen blocks of code, and the program runs on; ``"snapshot"``: what is in the
        ring is kept, each `count`-th time anew.
    name : str
        The function.
    file : str
        Absolute path or mere name of the file it is in; empty: any.
    location : int
        The address, or offset in `file`.
    number : int
        The signal.
    count : int
        How often it has to happen (before each snapshot); for ``"stop"`` and ``"snapshot"``: while recording
        is on.

    Examples
    --------
    >>> import ptkit
    >>> ptkit.Trigger.symbol("work", count=3) == ptkit.Trigger.parse("stop at work x3")
    True
    """

    event: str
    action: str = "stop"
    name: str = ""
    file: str = ""
    location: int = 0
    number: int = 0
    count: int = 1

    def __post_init__(self) -> None:
        """Check the values.

        Raises
        ------
        ConfigError
            If it is no trigger.
        """
        if self.event not in _EVENTS:
            raise ConfigError(f"event: expected one of {', '.join(_EVENTS)}, found {self.event!r}")
        if self.action not in _ACTIONS:
            raise ConfigError(f"action: expected one of {', '.join(_ACTIONS)}, found {self.action!r}")
        if self.event == "symbol" and (not isinstance(self.name, str) or not self.name or "\0" in self.name):
            raise ConfigError(f"symbol: expected a name, found {self.name!r}")
        object.__setattr__(self, "file", file_name(self.file))
        integer("address", self.location, 0, LAST_ADDRESS)
        integer("count", self.count, 1, 2**63 - 1)

    @classmethod
    def symbol(
        cls, symbol: str, *, count: int = 1, action: str = "stop", file: str | os.PathLike[str] = ""
    ) -> Trigger:
        """When a function is entered for the `count`-th time."""
        return cls("symbol", action, name=symbol, file=os.fspath(file), count=count)

    @classmethod
    def address(
        cls, address: int, *, count: int = 1, action: str = "stop", file: str | os.PathLike[str] = ""
    ) -> Trigger:
        """When the code at an address, or an offset in a file, is reached for the `count`-th time."""
        return cls("address", action, location=address, file=os.fspath(file), count=count)

    @classmethod
    def signal(cls, signal: str | int, *, count: int = 1, action: str = "stop") -> Trigger:
        """When the program gets a signal (``"USR1"``, ``signal.SIGUSR1``) for the `count`-th time."""
        return cls("signal", action, number=signal_number(signal), count=count)

    @classmethod
    def parse(cls, text: str) -> Trigger:
        """Read a trigger: ``"stop at main x3 @ ./a.out"``, ``"snapshot on USR1"``.

        Parameters
        ----------
        text : str
            ``start|stop|snapshot at LOCATION [xCOUNT] [@ FILE]`` or
            ``start|stop|snapshot on SIGNAL [xCOUNT]``; LOCATION is a symbol (``"in quotes"`` if it has
            blanks) or an address.

        Returns
        -------
        Trigger

        Raises
        ------
        ConfigError
            If it cannot be read.
        """
        match = _ONE.match(text) if isinstance(text, str) else None
        if match is None or match["action"] not in _ACTIONS:
            raise ConfigError(f"trigger {text!r}: {_SYNTAX}")
        try:
            return _made(match)
        except ConfigError as error:
            raise ConfigError(f"trigger {text!r}: {error}") from None


def _made(match: re.Match[str]) -> Trigger:
    action, file = match["action"], unquoted(match["file"])
    if match["count"] is not None and not match["count"].isdecimal():
        raise ConfigError(f"x{match['count']} is not a count")
    count = int(match["count"] or 1)
    if match["how"] == "on":
        if file:
            raise ConfigError("a signal has no file")
        return Trigger.signal(unquoted(match["what"]), count=count, action=action)
    location = number_or_name(match["what"])
    if isinstance(location, int):
        return Trigger.address(location, count=count, action=action, file=file)
    return Trigger.symbol(location, count=count, action=action, file=file)


def triggers_of(value: Any) -> list[Trigger]:
    """Read the option ``triggers``: a trigger or a text, or several of them.

    Raises
    ------
    ConfigError
        If it is neither.
    """
    if value is None:
        return []
    items = several("triggers", value, (str, Trigger), "ptkit.Trigger objects or texts")
    return [Trigger.parse(item) if isinstance(item, str) else item for item in items]
