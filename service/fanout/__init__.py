"""How a new version becomes known to watchers."""
