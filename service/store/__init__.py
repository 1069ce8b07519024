"""Adapters of the `Store` port: where matches are kept."""
