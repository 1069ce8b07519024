"""What is generated below docs/ is what the service offers."""

from docs.generate import METRICS, document, families


async def test_every_metric_is_documented_as_it_is() -> None:
    """`make docs` writes it again."""
    assert METRICS.read_text(encoding="utf-8") == document(await families())
