"""The verbs of the command line: one module each, with ``prepare_parser`` and ``run``."""
