"""Lists of symbols that other tools write, as text: nm, maps, WinDbg, JSON profiles, maps of JIT code."""

from ptkit.symbol_lists.reading import find_symbols, read_symbol_list

__all__ = ["find_symbols", "read_symbol_list"]
