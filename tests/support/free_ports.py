"""Ports for programs that must be told one before they listen there."""

from __future__ import annotations

import socket
from random import SystemRandom

BELOW_EPHEMERAL = range(20_000, 32_000)
"""Linux gives connections on their way out a port from 32,768 on (ip_local_port_range), so none takes one of these."""


def free_port() -> int:
    """A port of loopback that nobody listens on now; another one, nearly surely, at each call in any process."""
    while True:
        port = SystemRandom().choice(BELOW_EPHEMERAL)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
