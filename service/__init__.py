"""The server: one straight line from a stamped command to its fan-out. See docs/ARCHITECTURE.md."""
