"""The parser of the command line: short help, errors on one line, near names."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

from ptkit.errors import ConfigError
from ptkit.support.text import counted

__all__ = ["EXIT_INTERRUPTED", "EXIT_USAGE", "Parser", "Rare", "refuse_unused"]

EXIT_USAGE = 2
EXIT_INTERRUPTED = 130

# Options that other tools have for what is another word here.
_SAME = {"--top": "--limit", "--head": "--limit", "-n": "--limit"}


def refuse_unused(options: argparse.Namespace, names: Iterable[str], chosen: str, why: str = "") -> None:
    """Refuse options that say nothing of what `chosen` prints, unless they have their default.

    Raises
    ------
    ConfigError
        For the first of `names`, as attributes of the options are called; `why` comes after it.
    """
    for name in names:
        if name in options.given_options:
            raise ConfigError(f"--{name.replace('_', '-')} does not go with {chosen}{why}")


class Rare(str):
    """The help of an option that few people need: ``--help`` leaves the option out, ``--help-all`` has it."""

    __slots__ = ()


class _HelpAll(argparse.Action):
    """Prints the help with the rare options."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        assert isinstance(parser, Parser)
        parser.print_help_all()
        parser.exit()


class _Once(argparse._StoreAction):
    """Stores the value of an option, and refuses a second one: the first must not vanish without a word."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        stored: frozenset[str] = getattr(namespace, "stored_options", frozenset())
        if option_string is not None and self.dest in stored:
            parser.error(f"{'/'.join(self.option_strings)} is given twice: it takes one value")
        namespace.stored_options = stored | {self.dest}
        super().__call__(parser, namespace, values, option_string)


class Parser(argparse.ArgumentParser):
    """Shows what most people need, reports errors on one line, and says where help is."""

    def __init__(self, *args: Any, **options: Any) -> None:
        options.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        options.setdefault("allow_abbrev", False)  # --cyc would be --cyc-threshold, which takes a number
        super().__init__(*args, **options)
        self._shows_all = False
        for name in (None, "store"):
            self.register("action", name, _Once)
        self.add_argument(
            "--help-all", action=_HelpAll, nargs=0, dest=argparse.SUPPRESS, help=argparse.SUPPRESS
        )

    def print_help_all(self) -> None:
        """Print the help with the rare options and the usage of each option."""
        self._shows_all = True
        self.print_help()

    def format_help(self) -> str:
        """The help; its last line says how many options it leaves out."""
        if self._shows_all:
            return super().format_help()
        rare = [action for action in self._actions if isinstance(action.help, Rare)]
        helps, usage = [action.help for action in rare], self.usage
        for action in rare:
            action.help = argparse.SUPPRESS
        self.usage = usage or self._short_usage()
        try:
            text = super().format_help()
        finally:
            self.usage = usage
            for action, help in zip(rare, helps, strict=True):
                action.help = help
        if not rare:
            return text
        return f"{text}\n`{self.prog} --help-all` lists {counted(len(rare), 'option')} more.\n"

    def _short_usage(self) -> str:
        """The arguments that must be given; ``[OPTIONS]`` stands for all others."""
        words = [self.prog.replace("%", "%%"), "[OPTIONS]"]
        for action in self._actions:
            name = action.metavar if isinstance(action.metavar, str) else action.dest
            if isinstance(action, argparse._SubParsersAction):
                words.append(f"{name} ...")
            elif not action.option_strings:
                words.append(f"[{name}]" if action.nargs == "?" else name)
            elif action.required:
                words.append(f"{action.option_strings[0]} {name}")
        return " ".join(words)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        options, rest = super().parse_known_args(args, namespace)
        if hasattr(options, "stored_options"):
            del options.stored_options
        given = {
            action.dest
            for action in self._actions
            if getattr(options, action.dest, action.default) != action.default
        }
        options.given_options = getattr(options, "given_options", frozenset()) | given  # with those of a verb
        if rest:
            self._refuse(rest[0])
        return options, rest

    def _refuse(self, word: str) -> None:
        """Say that there is no such option, or that it is one argument too many."""
        if not word.startswith("-"):
            self.error(f"{word!r} is one argument too many")
        name = word.partition("=")[0]
        # --symbols takes files: it is no other spelling of --symbol.
        actions = [action for action in self._actions if not isinstance(action, _HelpAll)]
        known = [one for action in actions for one in action.option_strings if one != f"{name}s"]
        if name == "--all" and "--limit" in known:
            self.error("there is no option --all: without --limit, all are printed")
        self.error(f"there is no option {name}{_hint(name, known)}")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            names = [str(one) for one in action.choices]
            text = f"{value!r} is not one of {', '.join(names)}{_hint(str(value), names)}"
            raise argparse.ArgumentError(action, text)

    def error(self, message: str) -> None:  # type: ignore[override]
        self.exit(EXIT_USAGE, f"{self.prog}: error: {message} (see {self.prog} --help)\n")


def _hint(name: str, known: Iterable[str]) -> str:
    """The known name that means the same, or is nearest, as a question."""
    known = list(known)
    if _SAME.get(name) in known:
        return f"; did you mean {_SAME[name]}?"
    near = get_close_matches(name, known, 1)
    return f"; did you mean {near[0]}?" if near else ""
