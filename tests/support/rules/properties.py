"""How hypothesis searches here: without a stopwatch, so that a busy machine fails no test."""

from hypothesis import HealthCheck, settings

UNHURRIED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
