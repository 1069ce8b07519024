"""Settings from the environment: sensible without any, and one clear sentence for each wrong one."""

import os
from pathlib import Path

import pytest

from service.settings import Settings, SettingsError, load_settings


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ:
        if name.startswith("SPECBID_"):
            monkeypatch.delenv(name)


def test_nothing_needs_to_be_set() -> None:
    """Guests play on this machine only."""
    settings = load_settings()
    assert (settings.host, settings.port, settings.metrics_port) == ("127.0.0.1", 50051, 9464)
    assert settings.database == Path("spectacular-bid.sqlite3")
    assert not settings.reflection


GOOD = [
    ("HOST", "::1", "host", "::1"),
    ("HOST", "localhost", "host", "127.0.0.1"),
    ("HOST", "127.0.0.9", "host", "127.0.0.9"),
    ("PORT", "0", "port", 0),
    ("METRICS_PORT", "65535", "metrics_port", 65_535),
    ("DATABASE", "a folder/matches.sqlite3", "database", Path("a folder/matches.sqlite3")),
    ("LOG_LEVEL", "warning", "log_level", "warning"),
    ("LOG_FORMAT", "console", "log_format", "console"),
    ("DRAIN_SECONDS", "0.5", "drain_seconds", 0.5),
    ("REFLECTION", "true", "reflection", True),
]


@pytest.mark.parametrize(("name", "text", "field", "value"), GOOD)
def test_each_setting_is_read(monkeypatch: pytest.MonkeyPatch, name: str, text: str, field: str, value: object) -> None:
    """From the variable of its name with the prefix SPECBID_."""
    monkeypatch.setenv(f"SPECBID_{name}", text)
    assert getattr(load_settings(), field) == value


WRONG = [
    ("HOST", "0.0.0.0", "loopback"),  # noqa: S104  refused, that is the point
    ("HOST", "::", "loopback"),
    ("HOST", "192.168.1.7", "loopback"),
    ("HOST", "example.com", "must be an IP address or localhost"),
    ("HOST", "", "must be an IP address or localhost"),
    ("PORT", "http", "valid integer"),
    ("PORT", "", "valid integer"),
    ("PORT", "-1", "greater than or equal to 0"),
    ("PORT", "65536", "less than or equal to 65535"),
    ("METRICS_PORT", "1.5", "valid integer"),
    ("METRICS_PORT", "70000", "less than or equal to 65535"),
    ("LOG_LEVEL", "loud", "'debug', 'info', 'warning' or 'error'"),
    ("LOG_FORMAT", "xml", "'json' or 'console'"),
    ("DRAIN_SECONDS", "-1", "greater than or equal to 0"),
    ("DRAIN_SECONDS", "301", "less than or equal to 300"),
    ("DRAIN_SECONDS", "nan", "less than or equal to 300"),
    ("DRAIN_SECONDS", "soon", "valid number"),
    ("REFLECTION", "perhaps", "valid boolean"),
]


@pytest.mark.parametrize(("name", "text", "why"), WRONG)
def test_a_wrong_setting_is_one_sentence_that_names_its_variable(
    monkeypatch: pytest.MonkeyPatch, name: str, text: str, why: str
) -> None:
    """And the value as it was given."""
    monkeypatch.setenv(f"SPECBID_{name}", text)
    with pytest.raises(SettingsError) as caught:
        load_settings()
    sentence = str(caught.value)
    assert sentence.startswith(f"SPECBID_{name}={text!r}: ")
    assert why in sentence
    assert "\n" not in sentence
    assert "pydantic" not in sentence


def test_all_wrong_settings_are_named_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody has to start three times to learn of three mistakes."""
    for name in ("HOST", "PORT", "LOG_LEVEL"):
        monkeypatch.setenv(f"SPECBID_{name}", "wrong")
    with pytest.raises(SettingsError, match=r"SPECBID_HOST=.*; SPECBID_PORT=.*; SPECBID_LOG_LEVEL="):
        load_settings()


def test_variables_of_other_programs_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also those that look alike."""
    monkeypatch.setenv("PORT", "wrong")
    monkeypatch.setenv("SPECBID_UNKNOWN", "anything")
    assert load_settings() == Settings()
