"""The operating system: time and chance."""
