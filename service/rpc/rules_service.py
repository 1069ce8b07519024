"""RulesService: the rule text and its figures. Stateless; it never touches a clock."""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files

from engine import auction, clock, deal, scoring
from engine.tiles import DOUBLE_SIX
from service.rpc.arrival import Stamped
from service.rpc.edge import Context, message_of
from spectacularbid.v1 import rules_service_pb2 as pb


async def get_rules(stamped: Stamped[pb.GetRulesRequest], _: Context) -> bytes:
    """The whole rules, serialized once a process."""
    message_of(stamped)
    return rules()


@lru_cache(maxsize=1)
def rules() -> bytes:
    """The serialized GetRulesResponse."""
    text = files("engine").joinpath("rules.txt").read_text(encoding="utf-8")
    constants = pb.RulesConstants(
        starting_points=scoring.STARTING_POINTS,
        points_per_counter=scoring.POINTS_PER_COUNTER,
        tiles=len(DOUBLE_SIX),
        hand_size=deal.HAND_SIZE,
        boneyard_size=deal.BONEYARD_SIZE,
        minimum_bid_points=auction.MINIMUM_BID_POINTS,
        bid_step_points=auction.BID_STEP_POINTS,
        jockey_credit_points=auction.CREDIT_POINTS,
        bank_ns=clock.BANK_NS,
        delay_ns=clock.DELAY_NS,
    )
    return pb.GetRulesResponse(sections=sections(text), constants=constants).SerializeToString()


def sections(text: str) -> list[pb.RulesSection]:
    """The rule text by its headings: a heading is a paragraph of one line without a full stop."""
    found: list[pb.RulesSection] = []
    for paragraph in text.strip().split("\n\n"):
        if "\n" not in paragraph and not paragraph.endswith("."):
            found.append(pb.RulesSection(heading=paragraph))
        else:
            section = found[-1]
            section.text = f"{section.text}\n\n{paragraph}" if section.text else paragraph
    return found
