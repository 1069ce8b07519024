"""What a fuzzer sends: a method and the bytes of its messages, as one run of bytes that can be mutated."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

from google.protobuf.descriptor import MethodDescriptor, ServiceDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from spectacularbid.v1 import commands_pb2 as cmd
from spectacularbid.v1 import match_service_pb2, rules_service_pb2, time_service_pb2
from spectacularbid.v1 import match_service_pb2 as pb
from spectacularbid.v1.views_pb2 import MATCH_MODE_ONLINE
from tests.support.players import ACCEPT, CONTINUE, DECLINE, DRAW, PASS, RESIGN, REVEAL, START, bid, in_stream, new_id
from tests.support.players import play as play_tile

FILES = (match_service_pb2, rules_service_pb2, time_service_pb2)
SERVICES: list[ServiceDescriptor] = [service for file in FILES for service in file.DESCRIPTOR.services_by_name.values()]
METHODS: list[MethodDescriptor] = [method for service in SERVICES for method in service.methods]
OPEN = cmd.Command(start=cmd.Start(entropy=bytes(32)))
COMMIT = cmd.Command(commit_entropy=cmd.CommitEntropy(commitment=bytes(32)))
COMMANDS = (START, OPEN, COMMIT, CONTINUE, REVEAL, DECLINE, bid(15), ACCEPT, play_tile("2-5 E"), DRAW, PASS, RESIGN)


def example(method: MethodDescriptor, match_id: str) -> Message:
    """A good request of this method, as far as the names of its fields tell."""
    request: Message = GetMessageClass(method.input_type)()
    if isinstance(request, pb.PlayMatchRequest):
        request.CopyFrom(in_stream(PASS))
        request.command.command_id = new_id()
    for name, value in {"match_id": match_id, "command_id": new_id(), "request_id": new_id()}.items():
        if name in request.DESCRIPTOR.fields_by_name:
            setattr(request, name, value)
    if isinstance(request, pb.CreateMatchRequest):
        request.mode = MATCH_MODE_ONLINE
    return request


def packed(method: MethodDescriptor, *messages: bytes) -> bytes:
    """An input: the method's number, then each message behind its length; a unary method's only message to the end."""
    number = bytes([METHODS.index(method)])
    if not method.client_streaming:
        return number + messages[0]
    return number + b"".join(bytes([len(message)]) + message for message in messages)


def unpacked(data: bytes) -> tuple[MethodDescriptor, list[bytes]]:
    """The method and the messages of any bytes at all, the empty ones included."""
    method, data = METHODS[(data or b"\0")[0] % len(METHODS)], data[1:]
    if not method.client_streaming:
        return method, [data]
    messages = []
    while data:
        messages.append(data[1 : 1 + data[0]])
        data = data[1 + data[0] :]
    return method, messages


def seeds(match_id: str) -> Iterator[bytes]:
    """Good inputs to begin with: every method, and every kind of command, with every field set once."""
    opening = pb.PlayMatchRequest(open=pb.PlayMatchOpen(match_id=match_id)).SerializeToString()
    for method in METHODS:
        request = example(method, match_id)
        if isinstance(request, pb.SubmitCommandRequest):
            for number, command in enumerate(COMMANDS):
                request.command_id = str(UUID(int=number))
                request.command.CopyFrom(command)
                yield packed(method, request.SerializeToString())
        elif isinstance(request, pb.PlayMatchRequest):
            for number, command in enumerate(COMMANDS, start=len(COMMANDS)):
                message = pb.PlayMatchCommand(command_id=str(UUID(int=number)), command=command, expected_version=3)
                yield packed(method, opening, pb.PlayMatchRequest(command=message).SerializeToString())
        else:
            yield packed(method, request.SerializeToString())
