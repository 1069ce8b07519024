"""How fast it is: `python -m bench` (docs/PERFORMANCE.md).

Imports the engine and the stubs; the service is measured from outside, as a process of its own.
"""
