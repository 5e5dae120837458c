"""Modules that all packages use: checks of arguments and of memory, columns, text, files, the system."""
