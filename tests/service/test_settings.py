"""Settings from the environment: sensible without any, and one clear sentence for each wrong one."""

import os
import re
from pathlib import Path

import pytest

from service.settings import Settings, SettingsError, load_settings
from tests.support.platform import Authority, Platform
from tests.support.server import ROOT


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
    ("ADMIN_SOCKET", "/run/bid/admin", "admin_path", Path("/run/bid/admin")),
    ("DATABASE", "data/m.sqlite3", "admin_path", Path("data/m.sqlite3.admin")),
    ("HOST", "127.0.0.9", "own_address", "127.0.0.9"),
    ("HOST", "::1", "own_address", "[::1]"),
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


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    """Files to name in settings."""
    authority = Authority()
    certificate, key = authority.issue("localhost").write(tmp_path, "server")
    _, other_key = authority.issue("localhost").write(tmp_path, "other")
    (tmp_path / "ca.pem").write_bytes(authority.pem)
    Platform().settings(tmp_path)
    return {
        "CERT": str(certificate),
        "KEY": str(key),
        "OTHER": str(other_key),
        "CA": str(tmp_path / "ca.pem"),
        "JWKS": str(tmp_path / "jwks.json"),
        "NONE": str(tmp_path / "none"),
    }


TLS = {"TLS_CERTIFICATE": "CERT", "TLS_KEY": "KEY"}
JWT = {"AUTH": "platform", "JWKS_FILE": "JWKS", "JWT_ISSUER": "i", "JWT_AUDIENCE": "a"}
CERTIFICATES = TLS | {"AUTH": "platform", "TLS_CLIENT_CA": "CA", "CLIENT_SCOPES": '{"lobby": ["match:create"]}'}
EVERYWHERE = {"HOST": "0.0.0.0"}  # noqa: S104  what this is about

POSSIBLE: list[dict[str, str]] = [
    TLS,
    TLS | {"HEALTH_PORT": "0", "TLS_CLIENT_CA": "CA"},
    JWT,
    JWT | {"JWKS_FILE": "", "JWKS_URL": "https://platform.example/jwks.json"},
    JWT | {"JWKS_FILE": "", "JWKS_URL": "http://127.0.0.1:8080/jwks.json"},
    CERTIFICATES,
    CERTIFICATES | JWT | EVERYWHERE,
    TLS | JWT | EVERYWHERE,
    {"ENVOY_PORT": "0"},
    TLS | {"ENVOY_PORT": "50053"},
    TLS | JWT | EVERYWHERE | {"ENVOY_PORT": "50053", "ENVOY_CLIENT_CA": "CA"},
]
POSTGRES = {"DATABASE_URL": "postgresql://u:sesame@db/name", "SEALING_KEY_FILE": "KEY"}
IMPOSSIBLE: list[tuple[dict[str, str], str]] = [
    (TLS | EVERYWHERE, "players are guests, so the address must be a loopback one"),
    (JWT | EVERYWHERE, "without SPECBID_TLS_CERTIFICATE the address must be a loopback one"),
    ({"TLS_CERTIFICATE": "CERT"}, "SPECBID_TLS_CERTIFICATE needs SPECBID_TLS_KEY"),
    ({"TLS_KEY": "KEY"}, "SPECBID_TLS_KEY needs SPECBID_TLS_CERTIFICATE"),
    ({"TLS_CLIENT_CA": "CA"}, "SPECBID_TLS_CLIENT_CA needs SPECBID_TLS_CERTIFICATE"),
    ({"HEALTH_PORT": "0"}, "SPECBID_HEALTH_PORT needs SPECBID_TLS_CERTIFICATE"),
    (TLS | {"HEALTH_PORT": "50051"}, "must differ"),
    ({"METRICS_PORT": "50051"}, "must differ"),
    (TLS | {"METRICS_PORT": "50052"}, "must differ"),
    (TLS | {"ENVOY_PORT": "50052"}, "must differ"),
    ({"ENVOY_PORT": "9464"}, "must differ"),
    (TLS | {"ENVOY_CLIENT_CA": "CA"}, "SPECBID_ENVOY_CLIENT_CA needs SPECBID_ENVOY_PORT"),
    ({"ENVOY_PORT": "0", "ENVOY_CLIENT_CA": "CA"}, "SPECBID_ENVOY_CLIENT_CA needs SPECBID_TLS_CERTIFICATE"),
    (TLS | {"ENVOY_PORT": "0", "ENVOY_CLIENT_CA": "NONE"}, "SPECBID_ENVOY_CLIENT_CA must be a readable PEM file"),
    (TLS | JWT | EVERYWHERE | {"ENVOY_PORT": "0"}, "SPECBID_ENVOY_PORT beyond loopback needs SPECBID_ENVOY_CLIENT_CA"),
    (TLS | {"TLS_KEY": "OTHER"}, "readable PEM files that belong together"),
    (TLS | {"TLS_CERTIFICATE": "NONE"}, "readable PEM files that belong together"),
    (TLS | {"TLS_CLIENT_CA": "NONE"}, "SPECBID_TLS_CLIENT_CA must be a readable PEM file"),
    ({"AUTH": "platform"}, "SPECBID_AUTH=platform needs SPECBID_JWKS_FILE, SPECBID_JWKS_URL or SPECBID_CLIENT_SCOPES"),
    (JWT | {"AUTH": "guest"}, "SPECBID_JWKS_FILE, SPECBID_JWT_ISSUER, SPECBID_JWT_AUDIENCE need SPECBID_AUTH=platform"),
    (CERTIFICATES | {"AUTH": "guest"}, "SPECBID_CLIENT_SCOPES needs SPECBID_AUTH=platform"),
    (JWT | {"JWKS_URL": "https://p.example"}, "only one of SPECBID_JWKS_FILE and SPECBID_JWKS_URL"),
    (JWT | {"JWT_ISSUER": ""}, "SPECBID_JWKS_FILE needs SPECBID_JWT_ISSUER"),
    (JWT | {"JWT_AUDIENCE": ""}, "SPECBID_JWKS_FILE needs SPECBID_JWT_AUDIENCE"),
    (CERTIFICATES | {"JWT_ISSUER": "i"}, "SPECBID_JWT_ISSUER needs SPECBID_JWKS_FILE or SPECBID_JWKS_URL"),
    (JWT | {"JWKS_FILE": "", "JWKS_URL": "http://p.example"}, "SPECBID_JWKS_URL must begin with https://"),
    (JWT | {"JWKS_FILE": "", "JWKS_URL": "file:///etc/hosts"}, "SPECBID_JWKS_URL must begin with https://"),
    (JWT | {"CLIENT_SCOPES": '{"lobby": ["match:create"]}'}, "SPECBID_CLIENT_SCOPES needs SPECBID_TLS_CLIENT_CA"),
    (CERTIFICATES | {"CLIENT_SCOPES": '{"lobby": ["root"]}'}, "names unknown scopes: root"),
    (POSTGRES | {"SEALING_KEY_FILE": ""}, "SPECBID_DATABASE_URL needs SPECBID_SEALING_KEY_FILE"),
    (POSTGRES | {"DATABASE_URL": "mysql://u:sesame@db"}, "SPECBID_DATABASE_URL must be an address such as postgresql:"),
    ({"DURABILITY": "single-node"}, "SPECBID_DURABILITY needs SPECBID_DATABASE_URL"),
    ({"NATS_URL": "nats://sesame@n"}, "SPECBID_NATS_URL needs SPECBID_DATABASE_URL"),
    (POSTGRES | {"NATS_URL": "http://sesame@n"}, "SPECBID_NATS_URL must be an address such as nats://host:4222"),
    (POSTGRES | {"NATS_CREDENTIALS_FILE": "KEY"}, "SPECBID_NATS_CREDENTIALS_FILE needs SPECBID_NATS_URL"),
    (CERTIFICATES | {"CLIENT_SCOPES": "lobby"}, "SPECBID_CLIENT_SCOPES must be a JSON object"),
]


def set_all(monkeypatch: pytest.MonkeyPatch, settings: dict[str, str], files: dict[str, str]) -> None:
    """Set these variables, with the names of files in place; an empty one is not set."""
    for name, text in settings.items():
        if text:
            monkeypatch.setenv(f"SPECBID_{name}", files.get(text, text))


@pytest.mark.parametrize("settings", POSSIBLE)
def test_settings_that_go_together_do(
    monkeypatch: pytest.MonkeyPatch, files: dict[str, str], settings: dict[str, str]
) -> None:
    """TLS for guests of this machine, a platform here in the clear, a platform everywhere with TLS."""
    set_all(monkeypatch, settings, files)
    assert load_settings().auth == settings.get("AUTH", "guest")


@pytest.mark.parametrize(("settings", "why"), IMPOSSIBLE)
def test_settings_that_contradict_each_other_are_one_sentence(
    monkeypatch: pytest.MonkeyPatch, files: dict[str, str], settings: dict[str, str], why: str
) -> None:
    """Which names the variables to change."""
    set_all(monkeypatch, settings, files)
    with pytest.raises(SettingsError) as caught:
        load_settings()
    sentence = str(caught.value)
    assert sentence.startswith(("SPECBID_", "only one of SPECBID_"))
    assert why in sentence
    assert not {"\n", ";"} & set(sentence)
    assert "pydantic" not in sentence
    assert "sesame" not in sentence


def test_addresses_are_secrets(monkeypatch: pytest.MonkeyPatch, files: dict[str, str]) -> None:
    """They may hold passwords, which nobody sees by accident."""
    set_all(monkeypatch, POSTGRES | {"NATS_URL": "nats://u:sesame@n", "DURABILITY": "single-node"}, files)
    settings = load_settings()
    assert settings.database_url is not None
    assert settings.database_url.reveal() == "postgresql://u:sesame@db/name"
    assert "sesame" not in repr(settings)
    monkeypatch.setenv("SPECBID_PORT", "wrong")
    with pytest.raises(SettingsError) as caught:
        load_settings()
    assert "sesame" not in str(caught.value)


def test_health_has_a_port_of_its_own_with_tls_only(monkeypatch: pytest.MonkeyPatch, files: dict[str, str]) -> None:
    """50052 if none is named."""
    assert load_settings().plain_health_port is None
    set_all(monkeypatch, TLS, files)
    assert load_settings().plain_health_port == 50_052
    monkeypatch.setenv("SPECBID_HEALTH_PORT", "0")
    assert load_settings().plain_health_port == 0


def test_the_readme_lists_every_setting_with_its_default() -> None:
    """And no other."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    listed = dict(re.findall(r"^\| `SPECBID_(\w+)` \| (.*?) \|", text, re.MULTILINE))
    defaults = {name.upper(): field.default for name, field in Settings.model_fields.items()}
    assert set(listed) == set(defaults)
    for name, default in defaults.items():
        shown = (
            str(default).lower()
            if isinstance(default, bool)
            else f"{default:g}"
            if isinstance(default, float)
            else str(default)
        )
        assert listed[name] == ("" if default in (None, {}) else f"`{shown}`"), name


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


@pytest.mark.parametrize(("listens", "reached"), [("0.0.0.0", "127.0.0.1"), ("::", "[::1]"), ("10.1.2.3", "10.1.2.3")])  # noqa: S104
def test_whoever_listens_everywhere_is_reached_on_the_loopback_address(listens: str, reached: str) -> None:
    """For the health check on the same machine."""
    assert Settings().model_copy(update={"host": listens}).own_address == reached
