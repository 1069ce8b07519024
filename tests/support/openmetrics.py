"""Metrics as OpenMetrics has them: the text, and the families in it."""

from prometheus_client import CollectorRegistry, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.openmetrics.parser import text_string_to_metric_families

ACCEPT = "application/openmetrics-text; version=1.0.0"


def openmetrics(registry: CollectorRegistry) -> str:
    """What a registry says to whoever asks for OpenMetrics."""
    encode, _ = choose_encoder(ACCEPT)
    text: bytes = encode(registry)
    return text.decode()


def families_of(text: str) -> dict[str, Metric]:
    """The families of such a text by name; counters without `_total`."""
    return {family.name: family for family in text_string_to_metric_families(text)}  # type: ignore[no-untyped-call]
