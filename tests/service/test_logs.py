"""No log line can hold a secret, whoever writes it."""

import io
import json
from collections.abc import Iterator
from typing import Any

import pytest
import structlog

from engine.tiles import Tile
from service import logs
from service.secret import Secret


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> Iterator[io.StringIO]:
    """What the service's own configuration writes."""
    written = io.StringIO()
    monkeypatch.setattr("sys.stderr", written)
    before = structlog.get_config()
    logs.configure("info", "json")
    yield written
    structlog.configure(**before)


def logged(lines: io.StringIO) -> dict[str, Any]:
    """The one line that was written. Any: JSON."""
    (line,) = lines.getvalue().splitlines()
    facts: dict[str, Any] = json.loads(line)
    return facts


def test_a_field_that_is_not_known_is_withheld(lines: io.StringIO) -> None:
    """Its name is said, so that whoever misses it knows why."""
    structlog.get_logger().info("dealt", match_id="m", hand=(Tile(3, 5),), token="sbs_secret")
    facts = logged(lines)
    assert facts["match_id"] == "m"
    assert facts["withheld"] == ["hand", "token"]
    assert "sbs_secret" not in lines.getvalue()
    assert "Tile" not in lines.getvalue()


def test_an_exception_is_told_without_its_text_and_variables(lines: io.StringIO) -> None:
    """Kinds and places are enough to find a mistake."""

    def fails() -> None:
        tokens: dict[str, str] = {}
        try:
            tokens["sbs_secret"]
        except KeyError as error:
            raise ValueError(f"no {Tile(3, 5)}") from error

    try:
        fails()
    except ValueError as error:
        structlog.get_logger().error("internal_error", error_id="e", exc_info=error)
    exception = logged(lines)["exception"]
    assert "KeyError" in exception
    assert "ValueError" in exception
    assert "test_logs.py" in exception
    assert "'sbs_secret'" not in exception  # as the text of the KeyError has it; the source line is public
    assert "Tile(low" not in exception


def test_a_secret_shows_itself_only_when_asked() -> None:
    """In no format, no container and no comparison by text."""
    secret = Secret("sbs_token")
    assert f"{secret} {secret!r} {[secret]}" == "*** *** [***]"
    assert secret.reveal() == "sbs_token"
    assert secret == Secret("sbs_token")
    assert secret != Secret("other")
    assert hash(secret) == hash(Secret("sbs_token"))
