"""What every match of a process works with."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field

from engine.tiles import Tile
from service.deadlines import Deadlines
from service.footing import Turns
from service.ledger import FaultLedger
from service.metrics import Metrics
from service.ports import Bus, Clock, Entropy, Store
from service.watermark import Watermark


@dataclass(slots=True)
class Standstill:
    """Whether this process has stopped the clocks, so that it may start none."""

    has_begun: bool = False


@dataclass(frozen=True, slots=True)
class Services:
    """The ports, and what there is one of in a process."""

    store: Store
    clock: Clock
    bus: Bus
    entropy: Entropy
    metrics: Metrics
    deadlines: Deadlines
    ledger: FaultLedger
    watermark: Watermark
    spawn: Callable[[Coroutine[object, object, None]], object]
    shuffle: Callable[[bytes], tuple[Tile, ...]]
    turns: Turns
    standstill: Standstill = field(default_factory=Standstill)
