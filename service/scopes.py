"""What the platform may be allowed to do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum


class Scope(Enum):
    """A right that a platform credential carries. Only the first is needed by a method so far."""

    MATCH_CREATE = "match:create"
    MATCH_READ = "match:read"
    MATCH_ABORT = "match:abort"
    RESULTS_READ = "results:read"
    ADMIN = "admin"


@dataclass(frozen=True, slots=True)
class Identity:
    """Who calls, as the platform vouches for it: `subject` names the same one always and tells nobody who that is."""

    subject: str
    scopes: frozenset[Scope]


def scopes_of(names: frozenset[str]) -> frozenset[Scope]:
    """The scopes of these names; what is unknown here allows nothing."""
    return frozenset(scope for scope in Scope if scope.value in names)


def granted(scopes: Mapping[str, list[str]], name: str) -> frozenset[Scope]:
    """The scopes that a setting gives to a name."""
    return scopes_of(frozenset(scopes.get(name, ())))
