"""Output of verbs: rows as text and JSON, progress, text that a terminal shows as it is."""
