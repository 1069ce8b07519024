"""PromQL in short: what many panels ask for, and the matchers of the board's variables."""

from __future__ import annotations

import re

INSTANCE_VARIABLES = ("namespace", "job", "instance")
JOB_VARIABLES = ("namespace", "job")
"""What recorded series have: they are sums over the instances."""
WINDOW = "$__rate_interval"
_METRIC = re.compile(r"\b((?:specbid|grpc_server|process|python)[_:][a-z0-9_:]+)(\{)?")


def scoped(expr: str, *, before: str | None = None) -> str:
    """The expression with the matchers of the variables at every metric of ours; only those `before` this variable."""

    def matched(found: re.Match[str]) -> str:
        names = JOB_VARIABLES if ":" in found[1] else INSTANCE_VARIABLES
        if before is not None:
            names = names[: names.index(before)]
        matchers = ",".join(f'{name}=~"${name}"' for name in names)
        if not matchers:
            return found[0]
        return f"{found[1]}{{{matchers}," if found[2] else f"{found[1]}{{{matchers}}}"

    return _METRIC.sub(matched, expr)


def rate(metric: str, *by: str) -> str:
    """How often a second, for each value of the labels; summed over the instances."""
    return f"sum by ({', '.join(by)}) (rate({metric}[{WINDOW}]))"


def total(metric: str, *by: str) -> str:
    """A gauge, summed over the instances, for each value of the labels."""
    return f"sum by ({', '.join(by)}) ({metric})"


def quantile(share: float, histogram: str, *by: str) -> str:
    """This quantile of a histogram, over all instances, for each value of the labels."""
    return f"histogram_quantile({share}, sum by ({', '.join(('le', *by))}) (rate({histogram}_bucket[{WINDOW}])))"
