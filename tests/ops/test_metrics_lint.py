"""The metrics as Prometheus' own linter sees them."""

import asyncio
import subprocess
from pathlib import Path

from prometheus_client.exposition import choose_encoder

from helm.prometheus import program
from service import wiring
from service.settings import Settings


async def exposition(database: Path) -> bytes:
    """What a service that has just been started offers as plain text."""
    async with wiring.serving(Settings(port=0, metrics_port=0, drain_seconds=0, database=database)) as service:
        encode, _ = choose_encoder("text/plain")
        text: bytes = encode(service._metrics.registry)
    return text


def test_promtool_has_nothing_against_the_metrics(tmp_path: Path) -> None:
    """Names, units, types and help."""
    text = asyncio.run(exposition(tmp_path / "matches.sqlite3"))
    command = [str(program("promtool")), "check", "metrics"]
    checked = subprocess.run(command, input=text, capture_output=True, check=False, timeout=60)
    assert (checked.returncode, checked.stdout.decode(), checked.stderr.decode()) == (0, "", "")
