"""The README does what it says."""

import re
from pathlib import Path
from typing import Any

from tests.support.server import served

README = Path(__file__).parent.parent / "README.md"


async def test_the_readme_s_client_plays_a_match_to_its_end(tmp_path: Path) -> None:
    """The Python example is run as it stands, against a real server."""
    (example,) = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    namespace: dict[str, Any] = {"__name__": "readme"}  # Any: whatever the example defines
    exec(compile(example, str(README), "exec"), namespace)  # noqa: S102  the project's own text
    async with served(tmp_path / "matches.sqlite3") as server:
        result = await namespace["main"](server.address)
    assert result.HasField("won")
    assert result.rated
