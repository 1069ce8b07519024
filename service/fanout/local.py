"""The bus of a service that is a single process."""

from __future__ import annotations

from collections.abc import Callable


class LocalBus:
    """Delivers at once, in the same event loop."""

    def __init__(self) -> None:
        self._wakes: dict[str, list[Callable[[int | None], None]]] = {}

    @property
    def poll_seconds(self) -> float | None:
        """Nobody else moves matches."""
        return None

    @property
    def others_are_well(self) -> bool:
        """There are none, or none that can be heard."""
        return False

    def say_well(self) -> None:
        """Nobody hears it."""

    def publish(self, match_id: str, version: int) -> None:
        """Say that the match is at this version."""
        self._tell(match_id, version)

    def subscribe(self, match_id: str, wake: Callable[[int | None], None]) -> Callable[[], None]:
        """Call `wake(version)` at each new version until the returned function is called."""
        wakes = self._wakes.setdefault(match_id, [])
        wakes.append(wake)

        def unsubscribe() -> None:
            wakes.remove(wake)
            if not wakes and self._wakes.get(match_id) is wakes:
                del self._wakes[match_id]

        return unsubscribe

    def _tell(self, match_id: str, version: int | None) -> None:
        for wake in tuple(self._wakes.get(match_id, ())):
            wake(version)
