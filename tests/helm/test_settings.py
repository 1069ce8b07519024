"""The chart and the service mean the same settings."""

import os
from unittest import mock

import pytest
import yaml

from service.settings import Settings
from tests.helm.chart import (
    CHART,
    POSTGRESQL,
    PROFILES,
    SQLITE,
    containers,
    environment,
    pods,
    profile,
    rendered,
    server,
)

KNOWN = {f"SPECBID_{name.upper()}": field for name, field in Settings.model_fields.items()}
LEFT_TO_EXTRA_ENV = {"SPECBID_GUESTS_PER_SECOND", "SPECBID_TRACES"}
"""There are no guests in a cluster; traces need an image with the extra, and OTEL_* variables besides."""


def variables() -> set[str]:
    """Every variable that some profile sets."""
    return {entry["name"] for name in PROFILES for entry in server(profile(name))["containers"][0]["env"]}


def test_the_service_knows_every_variable_that_the_chart_sets() -> None:
    used = {
        entry["name"]
        for name in PROFILES
        for pod in pods(profile(name)).values()
        for container in containers(pod)
        for entry in container.get("env", [])
        if entry["name"].startswith("SPECBID_")
    }
    assert used - KNOWN.keys() == set()


def test_every_setting_can_be_reached() -> None:
    """SPECBID_JWKS_URL stands in for the file in no profile, and no profile needs both."""
    by_url = rendered({**SQLITE, "auth": {**SQLITE["auth"], "jwks": {"url": "https://id.example/keys"}}})
    reached = variables() | environment(server(by_url)).keys()
    assert KNOWN.keys() - reached <= LEFT_TO_EXTRA_ENV


@pytest.mark.parametrize("name", sorted(LEFT_TO_EXTRA_ENV))
def test_what_the_chart_leaves_out_can_be_set_by_extra_env(name: str) -> None:
    entry = {"name": name, "value": "7"}
    assert environment(server(rendered({**SQLITE, "extraEnv": [entry]})))[name] == entry


def test_a_default_of_the_chart_is_the_default_of_the_service() -> None:
    """But for what must differ in a cluster."""
    different = {"SPECBID_AUTH", "SPECBID_HOST", "SPECBID_DATABASE", "SPECBID_HEALTH_PORT"}
    set_by_chart = {name: entry.get("value") for name, entry in environment(server(rendered(SQLITE))).items()}
    defaults = {name: KNOWN[name].default for name in KNOWN.keys() & set_by_chart.keys() - different}
    expected = {name: text(default) for name, default in defaults.items() if default is not None}
    assert {name: set_by_chart[name] for name in expected} == expected


def text(default: object) -> str:
    """A default as the chart writes it."""
    return str(default).lower().removesuffix(".0")


def test_bounds_of_the_chart_are_bounds_of_the_service() -> None:
    schema = yaml.safe_load((CHART / "values.schema.json").read_text(encoding="utf-8"))["properties"]
    for group in ("limits", "timing"):
        for key, bounds in schema[group]["properties"].items():
            name = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in key)
            marks = Settings.model_fields[name].metadata
            assert {bounds["minimum"]} == {mark.ge for mark in marks if hasattr(mark, "ge")}, key
            assert {bounds["maximum"]} == {mark.le for mark in marks if hasattr(mark, "le")}, key


@pytest.mark.parametrize("name", PROFILES)
def test_the_service_accepts_what_a_profile_sets(name: str) -> None:
    """And so does `migrate`. The texts are the right ones; the files in them are elsewhere here."""
    runs = [
        container["env"]
        for pod in pods(profile(name)).values()
        for container in containers(pod)
        if container["args"] in (["serve"], ["migrate"])
    ]
    for run in runs:
        texts = {entry["name"]: entry.get("value", "postgresql://from.a.secret/duel") for entry in run}
        with mock.patch.dict(os.environ, texts), mock.patch("service.settings_checks._files", return_value=()):
            assert Settings().auth in {"platform", "guest"}


def test_pods_listen_everywhere_with_health_beside() -> None:
    texts = {name: entry["value"] for name, entry in environment(server(rendered(SQLITE))).items()}
    with mock.patch.dict(os.environ, texts), mock.patch("service.settings_checks._files", return_value=()):
        settings = Settings()
    assert (settings.host, settings.auth) == ("0.0.0.0", "platform")  # noqa: S104 - pods do
    assert settings.plain_health_port == 50052


def test_large_numbers_stay_numbers() -> None:
    limits = {"limits": {"commandsPerSecond": 1_000_000}}
    assert environment(server(rendered({**SQLITE, **limits})))["SPECBID_COMMANDS_PER_SECOND"]["value"] == "1000000"


def test_the_database_of_postgresql_comes_from_a_secret() -> None:
    pod = server(rendered(POSTGRESQL))
    assert environment(pod)["SPECBID_DATABASE_URL"]["valueFrom"] == {"secretKeyRef": {"name": "dsn", "key": "url"}}
    assert environment(pod)["SPECBID_DURABILITY"]["value"] == "synchronous-standby"
    assert "SPECBID_DATABASE" not in environment(pod)
