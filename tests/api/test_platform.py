"""Platform mode: who may create and join. Every bad credential gets one answer, and none makes the service fetch."""

import base64
import json
import time
import urllib.request
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import grpc
import jwt
import pytest
import pytest_asyncio

from service.rpc.jwks import FetchedKeys
from spectacularbid.v1 import match_service_pb2 as pb
from spectacularbid.v1.match_service_pb2_grpc import MatchServiceStub
from spectacularbid.v1.views_pb2 import MATCH_MODE_ONLINE, MATCH_MODE_SHARED_DEVICE
from tests.support.platform import Platform, bearer
from tests.support.players import Viewer, new_id
from tests.support.rejections import Rejection, rejection
from tests.support.server import Server, served

PLATFORM = Platform()
STRANGER = Platform()
Metadata = tuple[tuple[str, str], ...]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def platform_server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Server]:
    """The service in platform mode, with keys from a file."""
    folder = tmp_path_factory.mktemp("platform")
    async with served(folder / "m.sqlite3", chosen=PLATFORM.settings(folder)) as running:
        yield running


async def create(server: Server, metadata: Metadata, *, request_id: str = "") -> pb.CreateMatchResponse:
    """CreateMatch with this metadata."""
    request = pb.CreateMatchRequest(request_id=request_id or new_id(), mode=MATCH_MODE_ONLINE)
    return await MatchServiceStub(server.channel).CreateMatch(request, metadata=metadata)


async def join(server: Server, invite_code: str, metadata: Metadata, *, request_id: str = "") -> pb.JoinMatchResponse:
    """JoinMatch with this metadata."""
    request = pb.JoinMatchRequest(request_id=request_id or new_id(), invite_code=invite_code)
    return await MatchServiceStub(server.channel).JoinMatch(request, metadata=metadata)


@pytest.mark.parametrize("algorithm", ["ES256", "EdDSA"])
async def test_a_platform_token_creates_and_another_subjects_joins(platform_server: Server, algorithm: str) -> None:
    """From then on the seat's own token is all that is needed."""
    made = await create(platform_server, bearer(PLATFORM.token(algorithm=algorithm)))
    joined = await join(platform_server, made.invite_code, bearer(PLATFORM.token(sub="bo")))
    viewer = Viewer(MatchServiceStub(platform_server.channel), joined.match_id, joined.token)
    assert (await viewer.view()).own.seat == 2


async def test_a_token_may_be_thirty_seconds_late_and_five_minutes_young(platform_server: Server) -> None:
    """Clocks differ; nothing more is allowed for."""
    for ahead in (-28, 300):
        await create(platform_server, bearer(PLATFORM.token(exp=int(time.time()) + ahead)))


def unsigned() -> str:
    """A token that says that it needs no signature."""
    good = PLATFORM.token().split(".")
    header = {"alg": "none", "typ": "at+jwt", "kid": "es"}
    return f"{base64.urlsafe_b64encode(json.dumps(header).encode()).decode().rstrip('=')}.{good[1]}."


def signed_with_the_public_key() -> str:
    """The oldest trick: HS256, with what everybody knows as the secret."""
    public = json.loads(PLATFORM.jwks)["keys"][0]
    header = base64.urlsafe_b64encode(json.dumps({"alg": "HS256", "typ": "at+jwt", "kid": "es"}).encode()).decode()
    body = PLATFORM.token().split(".")[1]
    signing = f"{header.rstrip('=')}.{body}".encode()
    mac = jwt.algorithms.HMACAlgorithm(jwt.algorithms.HMACAlgorithm.SHA256).sign(signing, json.dumps(public).encode())
    return f"{signing.decode()}.{base64.urlsafe_b64encode(mac).decode().rstrip('=')}"


def changed_body() -> str:
    """Another token's body under this one's signature."""
    head, _, signature = PLATFORM.token().split(".")
    return f"{head}.{PLATFORM.token(sub='eve').split('.')[1]}.{signature}"


BAD: dict[str, Callable[[], str]] = {
    "alg none": unsigned,
    "HS256 with the public key": signed_with_the_public_key,
    "another body": changed_body,
    "another signer": STRANGER.token,
    "another audience": lambda: PLATFORM.token(aud="else"),
    "two audiences": lambda: PLATFORM.token(aud=["spectacular-bid", "else"]),
    "no audience": lambda: PLATFORM.token(aud=None),
    "another issuer": lambda: PLATFORM.token(iss="https://platform.example/"),
    "no issuer": lambda: PLATFORM.token(iss=None),
    "another type": lambda: PLATFORM.token(header={"typ": "JWT"}),
    "no type": lambda: PLATFORM.token(header={"typ": None}),
    "unknown kid": lambda: PLATFORM.token(header={"kid": "other"}),
    "no kid": lambda: PLATFORM.token(header={"kid": None}),
    "the other key's kid": lambda: PLATFORM.token(header={"kid": "ed"}),
    "jku": lambda: PLATFORM.token(header={"jku": "http://127.0.0.1:9/jwks.json"}),
    "x5u": lambda: PLATFORM.token(header={"x5u": "http://127.0.0.1:9/x.pem"}),
    "jwk": lambda: PLATFORM.token(header={"jwk": json.loads(PLATFORM.jwks)["keys"][0]}),
    "crit": lambda: PLATFORM.token(header={"crit": ["exp"]}),
    "expired by 31 seconds": lambda: PLATFORM.token(exp=int(time.time()) - 31),
    "good for too long": lambda: PLATFORM.token(exp=int(time.time()) + 340),
    "without an end": lambda: PLATFORM.token(exp=None),
    "an end that is no number": lambda: PLATFORM.token(exp="soon"),
    "an end in a string that lies too far": lambda: PLATFORM.token(exp=str(int(time.time()) + 340)),
    "no end at all": lambda: PLATFORM.token(exp=float("inf")),
    "not yet good": lambda: PLATFORM.token(nbf=int(time.time()) + 60),
    "nobody's": lambda: PLATFORM.token(sub=None),
    "an empty subject": lambda: PLATFORM.token(sub=""),
    "garbage": lambda: "a.b.c",
    "two parts": lambda: "eyJhbGciOiJFUzI1NiJ9.e30",
    "empty": lambda: "",
    "nested": lambda: base64.urlsafe_b64encode(b"[" * 2500).decode().rstrip("=") + ".e30.e30",
    "longer than any": lambda: PLATFORM.token(filler="x" * 4096),
    "a seat's": lambda: "sbs_" + "A" * 43,
}


@pytest.fixture
def _no_fetch(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise AssertionError("the service fetched something")

    monkeypatch.setattr(urllib.request, "build_opener", fail)
    monkeypatch.setattr(urllib.request, "urlopen", fail)


@pytest.mark.usefixtures("_no_fetch")
@pytest.mark.parametrize("name", BAD)
async def test_a_bad_platform_token_is_unauthenticated(platform_server: Server, name: str) -> None:
    """With the text that a missing one gets; nothing is made."""
    before = platform_server.sample("specbid_matches_created_total")
    expected = await refused(platform_server, ())
    assert expected.code is grpc.StatusCode.UNAUTHENTICATED
    assert await refused(platform_server, bearer(BAD[name]())) == expected
    assert platform_server.sample("specbid_matches_created_total") == before


async def refused(server: Server, metadata: Metadata) -> Rejection:
    """How creating a match is refused to somebody who has time."""
    server.service._limits.strangers._used_up_to_ns.clear()
    return await rejection(create(server, metadata))


async def test_two_credentials_are_none(platform_server: Server) -> None:
    """As everywhere, the header comes exactly once."""
    twice = bearer(PLATFORM.token()) * 2
    assert (await refused(platform_server, twice)).reason == "INVALID_TOKEN"


@pytest.mark.parametrize("scope", [None, "", "match:read", "match:created", "admin results:read", ["match:create"]])
async def test_a_token_without_the_scope_is_denied(platform_server: Server, scope: object) -> None:
    """Whatever else it may do, and the same for joining."""
    metadata = bearer(PLATFORM.token(scope=scope))
    denied = await refused(platform_server, metadata)
    assert (denied.code, denied.reason) == (grpc.StatusCode.PERMISSION_DENIED, "MISSING_SCOPE")
    assert await rejection(join(platform_server, "AAAAA-AAAAA", metadata)) == denied


async def test_one_subject_cannot_hold_both_seats(platform_server: Server) -> None:
    """Nor take over what another subject asked for by repeating the request."""
    ann, bo = (bearer(PLATFORM.token(sub=name)) for name in ("ann", "bo"))
    created_by, joined_by = new_id(), new_id()
    made = await create(platform_server, ann, request_id=created_by)
    denied = await rejection(join(platform_server, made.invite_code, ann))
    assert (denied.code, denied.reason) == (grpc.StatusCode.PERMISSION_DENIED, "NOT_FOR_THIS_SUBJECT")
    joined = await join(platform_server, made.invite_code, bo, request_id=joined_by)
    assert (await create(platform_server, ann, request_id=created_by)).match_id == made.match_id
    assert (await join(platform_server, "AAAAA-AAAAA", bo, request_id=joined_by)).match_id == joined.match_id
    assert await rejection(create(platform_server, bo, request_id=created_by)) == denied
    assert await rejection(join(platform_server, made.invite_code, ann, request_id=joined_by)) == denied


async def test_a_rotated_seat_is_still_its_subjects(platform_server: Server) -> None:
    """Rotation is no way to the other seat."""
    ann = bearer(PLATFORM.token(sub="ann"))
    made = await create(platform_server, ann)
    stub = MatchServiceStub(platform_server.channel)
    await stub.RotateToken(pb.RotateTokenRequest(match_id=made.match_id), metadata=bearer(made.token))
    assert (await rejection(join(platform_server, made.invite_code, ann))).reason == "NOT_FOR_THIS_SUBJECT"


async def test_one_subject_may_share_a_device(platform_server: Server) -> None:
    """Two people on one device need one credential."""
    request = pb.CreateMatchRequest(request_id=new_id(), mode=MATCH_MODE_SHARED_DEVICE)
    made = await MatchServiceStub(platform_server.channel).CreateMatch(request, metadata=bearer(PLATFORM.token()))
    assert made.token.startswith("sbd_")


async def test_strangers_of_one_address_are_turned_away(platform_server: Server) -> None:
    """After ten at once five a second; who has a credential goes on."""
    await refused(platform_server, ())
    codes = [(await rejection(create(platform_server, ()))).code for _ in range(15)]
    assert grpc.StatusCode.RESOURCE_EXHAUSTED in codes
    await create(platform_server, bearer(PLATFORM.token()))


async def test_new_keys_are_taken_from_the_file(tmp_path: Path) -> None:
    """And what is no key set leaves the last one in force."""
    async with served(tmp_path / "m.sqlite3", chosen=PLATFORM.settings(tmp_path)) as server:
        (tmp_path / "jwks.json").write_text("nonsense", encoding="utf-8")
        await create(server, bearer(PLATFORM.token()))
        STRANGER.settings(tmp_path)
        await create(server, bearer(STRANGER.token()))
        assert (await refused(server, bearer(PLATFORM.token()))).reason == "INVALID_TOKEN"


async def test_keys_from_an_address_are_fetched_by_the_clock_alone() -> None:
    """Asking for an unknown key fetches nothing, and a failed fetch keeps the keys."""
    answers = [PLATFORM.jwks, "nonsense"]
    keys = FetchedKeys("https://platform.example/jwks.json")
    keys._fetch = lambda: answers.pop(0)
    assert keys.get("es") is None
    await keys.start()
    assert keys.get("es") is not None
    assert keys.get("other") is None
    assert answers == ["nonsense"]
    await keys._refresh()
    assert keys.get("es") is not None
    keys.stop()
