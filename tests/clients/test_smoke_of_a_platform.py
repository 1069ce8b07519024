"""`smoke` against a service that asks who its players are, as `helm test` runs it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from service.settings import Settings
from service.wiring import serving
from spectacularbid.client.commands.smoke import smoke
from spectacularbid.client.commands.terminal import CommandFailedError
from tests.clients.terminals import arguments, paper_terminal
from tests.support.platform import AUDIENCE, ISSUER, Authority, Platform
from tests.support.server import UNHURRIED

AUTHORITY = Authority()
PLAYERS = ("one.example", "two.example")


def secured(folder: Path) -> Settings:
    """A service with TLS; its authority is in ca.crt."""
    (folder / "ca.crt").write_bytes(AUTHORITY.pem)
    certificate, key = AUTHORITY.issue("localhost").write(folder, "server")
    free = {"port": 0, "metrics_port": 0, "health_port": 0, "drain_seconds": 0.0, "database": folder / "m.sqlite3"}
    chosen = {"auth": "platform", "tls_certificate": certificate, "tls_key": key}
    return UNHURRIED.model_copy(update=free | chosen)


def known_by_certificate(folder: Path) -> Settings:
    """Each player has a folder as a Secret of type kubernetes.io/tls is mounted."""
    for name in PLAYERS:
        (folder / name).mkdir()
        made = AUTHORITY.issue(name)
        (folder / name / "tls.crt").write_bytes(made.certificate)
        (folder / name / "tls.key").write_bytes(made.key)
    scopes = {name: ["match:create"] for name in PLAYERS}
    return secured(folder).model_copy(update={"tls_client_ca": folder / "ca.crt", "client_scopes": scopes})


def known_by_token(folder: Path) -> Settings:
    """Each player has a folder with a token."""
    platform = Platform()
    for name in PLAYERS:
        (folder / name).mkdir()
        (folder / name / "token").write_text(f"{platform.token(sub=name)}\n", encoding="utf-8")
    keys = folder / "jwks.json"
    keys.write_text(platform.jwks, encoding="utf-8")
    return secured(folder).model_copy(update={"jwks_file": keys, "jwt_issuer": ISSUER, "jwt_audience": AUDIENCE})


@pytest.mark.parametrize("chosen", [known_by_certificate, known_by_token])
async def test_smoke_plays_as_two_players_of_the_platform(tmp_path: Path, chosen: Callable[[Path], Settings]) -> None:
    terminal, paper = paper_terminal()
    async with serving(chosen(tmp_path)) as service:
        players = [str(tmp_path / name) for name in PLAYERS]
        words = ("--server", service.addresses.grpc, "--ca", str(tmp_path / "ca.crt"), "--seed", "1", "--as", *players)
        status = await smoke(terminal, arguments("smoke", *words))
    assert paper.lines[0].startswith("smoke passed: ")
    assert status == 0


@pytest.mark.parametrize("words", [("--ca", "none.pem"), ("--as", "nobody", "nobody")])
async def test_a_file_that_is_not_there_is_a_sentence(words: tuple[str, ...]) -> None:
    terminal, _ = paper_terminal()
    with pytest.raises(CommandFailedError, match=r"^(none\.pem|nobody/tls\.key) cannot be read: No such file"):
        await smoke(terminal, arguments("smoke", *words))
