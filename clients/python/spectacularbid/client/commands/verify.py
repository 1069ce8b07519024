"""`verify`: check the proof of a match's deal, from a file or straight from the service."""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

from google.protobuf.json_format import ParseDict, ParseError

from spectacularbid.client.commands.seating import TOKEN_VARIABLE
from spectacularbid.client.commands.terminal import (
    EXIT_DONE,
    EXIT_FAILED,
    CommandFailedError,
    Terminal,
    expect_answer,
    open_service,
    run_to_exit_status,
)
from spectacularbid.client.fair_deal import SEATS, problems
from spectacularbid.client.service import DEFAULT_TARGET
from spectacularbid.client.token import Token
from spectacularbid.v1.deal_pb2 import DealProof


def run(args: argparse.Namespace) -> int:
    """0 when every tile follows from what was committed to, else 1."""
    return run_to_exit_status(lambda terminal: verify(terminal, args))


async def verify(terminal: Terminal, args: argparse.Namespace) -> int:
    """Say what is wrong, a sentence a line, or what was proven. Raises CommandFailedError or ClientError."""
    if (args.file is None) == (args.match is None):
        raise CommandFailedError("Name either a file with a proof or --match.")
    proof = read_proof(Path(args.file)) if args.match is None else await _fetched(args)
    found = problems(proof)
    if found:
        terminal.say(*found, "The deal is NOT proven.")
        return EXIT_FAILED
    terminal.say(*_summary(proof))
    return EXIT_DONE


def read_proof(path: Path) -> DealProof:
    """The proof in a file: the JSON of a DealProof, or of the answer to GetDealProof. Raises CommandFailedError."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return ParseDict(content.get("proof", content), DealProof())
    except OSError as error:
        raise CommandFailedError(f"{path} cannot be read: {error.strerror}.") from None
    except (ValueError, AttributeError, ParseError):
        raise CommandFailedError(f"{path} is not the JSON of a proof.") from None


async def _fetched(args: argparse.Namespace) -> DealProof:
    token = args.token or os.environ.get(TOKEN_VARIABLE, "")
    if not token:
        raise CommandFailedError(f"--match needs --token, or the token in {TOKEN_VARIABLE}.")
    server = args.server or DEFAULT_TARGET
    async with open_service(server, tls=args.tls) as service:
        await expect_answer(service, server)
        return await service.watch_only(args.match, Token(token)).deal_proof()


def _summary(proof: DealProof) -> list[str]:
    parts = [
        f"seat {SEATS[seat.seat]} {'took part' if seat.entropy else 'left it to the others'}" for seat in proof.seats
    ]
    drawn = sum(len(each.drawn) for each in proof.rounds)
    return [
        f"Match {proof.match_id}: {len(proof.rounds)} rounds and {drawn} draws follow from what was committed to.",
        f"The service committed to {proof.server_commitment.hex()} when the match was made; {', '.join(parts)}.",
        "The deal is proven.",
    ]
