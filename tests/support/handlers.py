"""The real handlers on a process of fakes, for tests that call them without a port."""

from service.rpc.auth import Gatekeeper
from service.rpc.match_service import MatchService
from service.rpc.render import Renderer
from tests.support.ports import Process


def handlers_of(process: Process) -> MatchService:
    """Fresh handlers: no token, no view and no match is in any cache."""
    return MatchService(
        matches=process.matches,
        gatekeeper=Gatekeeper(process.store, process.metrics),
        renderer=Renderer(),
        clock=process.core.clock,
        store=process.store,
        metrics=process.metrics,
    )
