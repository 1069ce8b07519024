"""The metrics as Prometheus' own linter sees them."""

import asyncio
import shutil
import subprocess
from pathlib import Path

from prometheus_client.exposition import choose_encoder

from service import wiring
from service.settings import Settings
from tests.support.tidy import ROOT

TOOLS = ROOT / ".tools"


def promtool() -> str:
    """The program; a check that is skipped is no check."""
    found = next((str(path) for path in TOOLS.rglob("promtool") if path.is_file()), None) or shutil.which("promtool")
    assert found is not None, "promtool is missing: `make check-ops` fetches it, or install Debian's package prometheus"
    return found


async def exposition(database: Path) -> bytes:
    """What a service that has just been started offers as plain text."""
    async with wiring.serving(Settings(port=0, metrics_port=0, drain_seconds=0, database=database)) as service:
        encode, _ = choose_encoder("text/plain")
        text: bytes = encode(service._metrics.registry)
    return text


def test_promtool_has_nothing_against_the_metrics(tmp_path: Path) -> None:
    """Names, units, types and help."""
    text = asyncio.run(exposition(tmp_path / "matches.sqlite3"))
    command = [promtool(), "check", "metrics"]
    checked = subprocess.run(command, input=text, capture_output=True, check=False, timeout=60)
    assert (checked.returncode, checked.stdout.decode(), checked.stderr.decode()) == (0, "", "")
