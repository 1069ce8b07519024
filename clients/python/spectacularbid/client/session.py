"""A match as the holder of one token has it."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING

from spectacularbid.client.deal_part import DealPart, no_part
from spectacularbid.client.digest import check_digest
from spectacularbid.client.play import PlaySession
from spectacularbid.client.retry import Metadata, attempt, call
from spectacularbid.client.settings import Settings
from spectacularbid.client.token import Token
from spectacularbid.client.watch import Open, spectating, watch, watching
from spectacularbid.v1.commands_pb2 import Command
from spectacularbid.v1.deal_pb2 import DealProof
from spectacularbid.v1.match_service_pb2 import (
    GetDealProofRequest,
    GetDealProofResponse,
    GetMatchRequest,
    GetMatchResponse,
    LeaveMatchRequest,
    LeaveMatchResponse,
    MatchUpdate,
    RotateTokenRequest,
    RotateTokenResponse,
    SubmitCommandRequest,
    SubmitCommandResponse,
)
from spectacularbid.v1.outcomes_pb2 import CommandOutcome

if TYPE_CHECKING:
    from spectacularbid.v1.match_service_pb2_grpc import MatchServiceAsyncStub


class WatchSession:
    """What a spectator may do: its updates hold no own part."""

    def __init__(self, stub: MatchServiceAsyncStub, match_id: str, token: Token, settings: Settings) -> None:
        self.match_id = match_id
        self.token = token
        self._stub = stub
        self._settings = settings

    def __repr__(self) -> str:
        return f"{type(self).__name__}(match_id={self.match_id!r})"

    def updates(self, after_version: int = 0) -> AsyncGenerator[MatchUpdate, None]:
        """Yields whole views until one has a result, over as many streams as it takes. Raises `ClientError`."""
        return watch(self._open(), settings=self._settings, after_version=after_version)

    async def deal_proof(self) -> DealProof:
        """Everything that fixed the tiles, after the end. Raises `ClientError`."""
        request = GetDealProofRequest(match_id=self.match_id)
        response: GetDealProofResponse = await call(
            self._stub.GetDealProof, request, settings=self._settings, metadata=self._metadata
        )
        return response.proof

    def _open(self) -> Open:
        return spectating(self._stub, self.match_id, self._metadata)

    async def rotate_token(self) -> Token:
        """Get a fresh token in the place of this one, which stops working; streams opened before end with an error.

        Not tried again when the answer is lost. Raises `ClientError`.
        """
        request = RotateTokenRequest(match_id=self.match_id)
        response: RotateTokenResponse = await attempt(
            self._stub.RotateToken, request, seconds=self._settings.limits.attempt_seconds, metadata=self._metadata
        )
        self.token = Token(response.token)
        return self.token

    @property
    def _metadata(self) -> Metadata:
        return (("authorization", f"Bearer {self.token.reveal()}"),)


class MatchSession(WatchSession):
    """What the holder of a seat, or of a shared device, may do.

    `invite_code` and `spectator_token` are those of a match just created, empty otherwise.
    """

    def __init__(
        self,
        stub: MatchServiceAsyncStub,
        match_id: str,
        token: Token,
        settings: Settings,
        *,
        invite_code: str = "",
        spectator_token: Token | None = None,
        part: DealPart | None = None,
    ) -> None:
        super().__init__(stub, match_id, token, settings)
        self.part = part or no_part(match_id)
        self.invite_code = invite_code
        self.spectator_token = spectator_token or Token("")

    async def get(self) -> MatchUpdate:
        """The view now. Raises `ClientError`."""
        request = GetMatchRequest(match_id=self.match_id)
        response: GetMatchResponse = await call(
            self._stub.GetMatch, request, settings=self._settings, metadata=self._metadata
        )
        check_digest(response.update.view, response.update.view_digest, self._settings.on_desync)
        return response.update

    async def commit_entropy(self) -> bool:
        """Take part in the deal; Start opens it then. False when it is too late. Raises `ClientError`."""
        outcome = await self.submit(self.part.commitment())
        self.part.is_committed = outcome.HasField("accepted")
        return self.part.is_committed

    async def submit(self, command: Command, expected_version: int | None = None) -> CommandOutcome:
        """Send a command, again with the same id while that may help. Raises `ClientError`; a refusal is an outcome."""
        request = SubmitCommandRequest(
            match_id=self.match_id,
            command_id=self._settings.new_id(),
            expected_version=expected_version,
            command=self.part.opened(command),
        )
        response: SubmitCommandResponse = await call(
            self._stub.SubmitCommand, request, settings=self._settings, metadata=self._metadata
        )
        check_digest(response.outcome.view, response.outcome.view_digest, self._settings.on_desync)
        return response.outcome

    def play(self) -> PlaySession:
        """Watch and submit on one stream, at a third of the cost."""
        return PlaySession(self._stub, self.match_id, metadata=self._metadata, settings=self._settings, part=self.part)

    async def leave(self) -> MatchUpdate:
        """Leave a match that has not started. Raises `ClientError`."""
        request = LeaveMatchRequest(match_id=self.match_id)
        response: LeaveMatchResponse = await call(
            self._stub.LeaveMatch, request, settings=self._settings, metadata=self._metadata
        )
        return response.update

    def _open(self) -> Open:
        return watching(self._stub, self.match_id, self._metadata)
