"""Counters and histograms for the hot path: closed label sets, one writing thread, no lock.

`prometheus_client` keeps a lock and checks each number: 0.6 us a count, 0.75 us an observation, and a command makes a
dozen of them. These cost a quarter. Only the event loop's thread may write; any thread may collect.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, Exemplar, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

Bucket: TypeAlias = tuple[str, float] | tuple[str, float, Exemplar]


class Counter:
    """A count of one label set; what counts for every command adds to it without the call."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0

    def inc(self) -> None:
        """One more."""
        self.count += 1

    def add(self, more: int) -> None:
        """So many more."""
        self.count += more


class Histogram:
    """A distribution of seconds of one label set; each bucket keeps its latest exemplar."""

    __slots__ = ("_bounds", "_counts", "_exemplars", "_sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0
        self._exemplars: list[tuple[Mapping[str, str], float, int] | None] = [None] * len(self._counts)

    def observe_ns(self, length_ns: int) -> None:
        """One more, in nanoseconds."""
        seconds = length_ns / 1e9
        self._counts[bisect_left(self._bounds, seconds)] += 1
        self._sum += seconds

    def observe_example_ns(self, length_ns: int, labels: Mapping[str, str], at_ns: int) -> None:
        """One more, and what it was: shown where OpenMetrics is asked for."""
        seconds = length_ns / 1e9
        bucket = bisect_left(self._bounds, seconds)
        self._counts[bucket] += 1
        self._sum += seconds
        self._exemplars[bucket] = labels, seconds, at_ns

    def snapshot(self) -> tuple[list[Bucket], float]:
        """The buckets as Prometheus has them (upper bound, count up to it, maybe an exemplar), and the sum."""
        buckets: list[Bucket] = []
        total = 0
        bounds = (*map(floatToGoString, self._bounds), "+Inf")
        for bound, count, example in zip(bounds, list(self._counts), list(self._exemplars), strict=True):
            total += count
            if example is None:
                buckets.append((bound, float(total)))
            else:
                labels, seconds, at_ns = example
                buckets.append((bound, float(total), Exemplar(dict(labels), seconds, at_ns / 1e9)))
        return buckets, self._sum


class Counters(Collector):
    """A family of counters; `child` makes each label set before the first sample. The name is without `_total`."""

    def __init__(self, registry: CollectorRegistry, name: str, text: str, labels: Sequence[str] = ()) -> None:
        self._name, self._text, self._labels = name, text, labels
        self._children: dict[tuple[str, ...], Counter] = {}
        registry.register(self)

    def child(self, *values: str) -> Counter:
        """The counter of a label set."""
        return self._children.setdefault(values, Counter())

    def describe(self) -> Iterator[Metric]:
        """The family without samples."""
        yield CounterMetricFamily(self._name, self._text, labels=self._labels)

    def collect(self) -> Iterator[Metric]:
        """The family with a sample of each child."""
        family = CounterMetricFamily(self._name, self._text, labels=self._labels)
        for values, counter in self._children.items():
            family.add_metric(values, counter.count)
        yield family


class Histograms(Collector):
    """A family of histograms of seconds with these upper bounds; the name ends in `_seconds`."""

    def __init__(
        self, registry: CollectorRegistry, name: str, text: str, bounds: Sequence[float], labels: Sequence[str] = ()
    ) -> None:
        self._name, self._text, self._labels = name, text, labels
        self._bounds = bounds
        self._children: dict[tuple[str, ...], Histogram] = {}
        registry.register(self)

    def child(self, *values: str) -> Histogram:
        """The histogram of a label set."""
        return self._children.setdefault(values, Histogram(self._bounds))

    def describe(self) -> Iterator[Metric]:
        """The family without samples."""
        yield HistogramMetricFamily(self._name, self._text, labels=self._labels, unit="seconds")

    def collect(self) -> Iterator[Metric]:
        """The family with the samples of each child."""
        family = HistogramMetricFamily(self._name, self._text, labels=self._labels, unit="seconds")
        for values, histogram in self._children.items():
            buckets, total = histogram.snapshot()
            family.add_metric(values, buckets, total)
        yield family
