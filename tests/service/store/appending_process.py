"""A process that appends to a SQLite store until it is killed, and says on stdout what was acknowledged."""

import asyncio
import sys
from pathlib import Path

from service.ports import StoreOpenError
from service.store.sqlite import SqliteStore
from tests.support.store import creation, move, outcome

MATCHES = 8


async def play(store: SqliteStore, match_id: str) -> None:
    """Appends one version after the other; a line is written only when it was acknowledged."""
    await store.append(creation(match_id))
    version = 1
    while True:
        await store.append(move(match_id, version, record=outcome(f"c{version}", version=version + 1)))
        version += 1
        print(match_id, version, flush=True)  # noqa: T201  # the other process reads it


async def main(path: Path) -> None:
    """Plays several matches at once."""
    try:
        store = await SqliteStore.open(path)
    except StoreOpenError as error:
        sys.exit(str(error))
    await asyncio.gather(*(play(store, f"m{number}") for number in range(MATCHES)))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
