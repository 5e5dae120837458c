"""Questions about traces."""
