"""PromQL in short: what many panels ask for, and the matchers of the board's variables."""

from __future__ import annotations

import re
from dataclasses import dataclass

INSTANCE_VARIABLES = ("namespace", "job", "instance")
JOB_VARIABLES = ("namespace", "job")
"""What recorded series have: they are sums over the instances."""
WINDOW = "$__rate_interval"
_METRIC = re.compile(r"\b((?:specbid|grpc_server|process|python)[_:][a-z0-9_:]+)(\{)?")


@dataclass(frozen=True, slots=True)
class Query:
    """A PromQL expression without the matchers of the variables, and Grafana's template for the name of a line."""

    expr: str
    legend: str


def scoped(expr: str, *, before: str | None = None) -> str:
    """The expression with the matchers of the variables at every metric of ours; only those `before` this variable."""

    def matched(found: re.Match[str]) -> str:
        names: tuple[str, ...] = JOB_VARIABLES if ":" in found[1] else INSTANCE_VARIABLES
        if before is not None:
            names = names[: names.index(before)]
        matchers = ",".join(f'{name}=~"${name}"' for name in names)
        if not matchers:
            return found[0]
        return f"{found[1]}{{{matchers}," if found[2] else f"{found[1]}{{{matchers}}}"

    return _METRIC.sub(matched, expr)


def rate(metric: str, *by: str) -> str:
    """How often a second, for each value of the labels; summed over the instances."""
    return _sum(f"rate({metric}[{WINDOW}])", by)


def happening(metric: str, *by: str) -> str:
    """The same for label sets of which most stay at zero: those are left out."""
    return f"{rate(metric, *by)} > 0"


def total(metric: str, *by: str) -> str:
    """A gauge, summed over the instances, for each value of the labels."""
    return _sum(metric, by)


def quantile(share: float, histogram: str, *by: str) -> str:
    """This quantile of a histogram, over all instances, for each value of the labels."""
    return f"histogram_quantile({share}, sum by ({', '.join(('le', *by))}) (rate({histogram}_bucket[{WINDOW}])))"


def quantiles(histogram: str, *shares: float) -> tuple[Query, ...]:
    """Some quantiles of a histogram over all instances; the median and the 99th percentile if none is named."""
    return tuple(Query(quantile(share, histogram), f"p{100 * share:g}") for share in shares or (0.5, 0.99))


def _sum(vector: str, by: tuple[str, ...]) -> str:
    return f"sum by ({', '.join(by)}) ({vector})" if by else f"sum({vector})"
