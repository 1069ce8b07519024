"""A client that wants to do harm: strangers' tokens, malformed bytes, illegal and stale commands, floods."""

from __future__ import annotations

from random import Random
from uuid import UUID

import grpc

from spectacularbid.v1 import commands_pb2, tiles_pb2
from spectacularbid.v1 import match_service_pb2 as pb
from tests.sim.clients import CALM, Client
from tests.sim.machine import ClientCall, WayIn
from tests.sim.prepared import Prepared
from tests.sim.transport import Caller
from tests.sim.truth import Attempt
from tests.sim.world import MS_NS

FLOOD = 80
_NONSENSE = (
    commands_pb2.Command(start=commands_pb2.Start()),
    commands_pb2.Command(continue_round=commands_pb2.Continue()),
    commands_pb2.Command(reveal=commands_pb2.Reveal()),
    commands_pb2.Command(pass_turn=commands_pb2.Pass()),
    commands_pb2.Command(draw_tile=commands_pb2.DrawTile()),
    commands_pb2.Command(accept_bid=commands_pb2.AcceptBid()),
    commands_pb2.Command(make_bid=commands_pb2.Bid(points=7)),
    commands_pb2.Command(raise_bid=commands_pb2.Raise(points=2**31 - 1)),
    commands_pb2.Command(play_tile=commands_pb2.PlayTile(tile=tiles_pb2.Tile(low=5, high=2), end=tiles_pb2.END_WEST)),
    commands_pb2.Command(play_tile=commands_pb2.PlayTile(tile=tiles_pb2.Tile(low=0, high=0), end=tiles_pb2.END_EAST)),
    commands_pb2.Command(),
)


class Stranger(Client):
    """Knocks with tokens that nobody has heard of."""

    def __init__(self, machine: WayIn, chance: Random, match_id: str) -> None:
        super().__init__(machine, chance, "nobody", match_id, CALM)

    def knock(self) -> None:
        """Send one command that cannot be anybody's."""
        request = pb.SubmitCommandRequest(
            match_id=self.match_id, command_id=str(UUID(int=self.chance.getrandbits(128))), command=_NONSENSE[3]
        )
        caller = Caller(lambda _data, _sent_ns: None, lambda _code: None, self.latency_ns)
        call = ClientCall(self.machine, "SubmitCommand", f"made up {self.chance.getrandbits(64)}", caller)
        call.send(request.SerializeToString(), None, MS_NS)


class Flooder(Client):
    """Has a seat's token and sends what is not its turn to send."""

    def __init__(self, machine: WayIn, chance: Random, match_id: str, token: str) -> None:
        super().__init__(machine, chance, "flooder", match_id, CALM)
        self._token = token

    def knock(self) -> None:
        """Send one command that will be refused."""
        command_id = str(UUID(int=self.chance.getrandbits(128)))
        request = pb.SubmitCommandRequest(match_id=self.match_id, command_id=command_id, command=_NONSENSE[3])
        holder = self._token.split("-")[0]
        attempt = Attempt(self.match_id, holder, command_id, _NONSENSE[3], None, is_honest=False)
        self.truth.attempts[self.match_id, command_id].append(attempt)
        caller = Caller(lambda _data, _sent_ns: None, lambda _code: None, self.latency_ns)
        ClientCall(self.machine, "SubmitCommand", self._token, caller).send(request.SerializeToString(), attempt, MS_NS)


class Hostile(Client):
    """Attacks one match, with a seat's token, a spectator's, or made-up ones."""

    def __init__(self, machine: WayIn, chance: Random, prepared: Prepared, *, floods: bool) -> None:
        super().__init__(machine, chance, "hostile", prepared.match_id, CALM)
        self._prepared, self._floods = prepared, floods
        self._used_ids: list[str] = []

    def begin(self) -> None:
        """Attack now and then until silenced."""
        if self.is_silent:
            return
        holder = self.chance.choice([*self._prepared.tokens, "nobody"])
        for _ in range(FLOOD if self._floods and self.chance.random() < 0.15 else 1):
            self._attack(holder)
        self.world.after(self.chance.randrange(50 * MS_NS, 900 * MS_NS), self.begin)

    def _attack(self, holder: str) -> None:
        known = self._prepared.tokens.get(holder)
        token = self.chance.choice(known) if known else f"made up {self.chance.getrandbits(64)}"
        command_id = str(UUID(int=self.chance.getrandbits(128)))
        if self._used_ids and self.chance.random() < 0.1:
            command_id = self.chance.choice(self._used_ids)
        self._used_ids.append(command_id)
        version = self.chance.choice([None, None, 1, 3, 10_000])
        command = self.chance.choice(_NONSENSE)
        request = pb.SubmitCommandRequest(
            match_id=self.match_id, command_id=command_id, expected_version=version, command=command
        )
        data = request.SerializeToString()
        if self.chance.random() < 0.1:
            data = self.chance.randbytes(self.chance.randrange(40))
        attempt = Attempt(self.match_id, holder, command_id, command, version, is_honest=False)
        self.truth.attempts[self.match_id, command_id].append(attempt)
        self.truth.count("hostile command")
        self._call(token).send(data, attempt, self.latency_ns())

    def _call(self, token: str) -> ClientCall:
        def ended(code: grpc.StatusCode) -> None:
            if code in (grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN):
                self.truth.violated("a hostile command is answered", f"{self.match_id}: {code}")

        return ClientCall(
            self.machine, "SubmitCommand", token, Caller(lambda _data, _sent_ns: None, ended, self.latency_ns)
        )
