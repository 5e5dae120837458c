"""Code of a trace, and names of its addresses."""
