"""The command line: one module per verb, each with ``prepare_parser`` and ``run``."""

from __future__ import annotations

from ptkit.cli.main import main

__all__ = ["main"]
