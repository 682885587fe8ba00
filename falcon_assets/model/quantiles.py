"""Distances of distributions, of which a hundred quantiles or the most frequent values are known."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import chain

_STEPS = 100
_ACCURACY = 1000


def quantiles_sql(value: str, shares: Sequence[float]) -> str:
    """The values below which these shares of all are, nearly."""
    return f"percentile_approx({value}, array({', '.join(map(str, shares))}), {_ACCURACY})"


def percentiles_sql(value: str) -> str:
    """The smallest, those at each percent, and the largest."""
    return quantiles_sql(value, [step / _STEPS for step in range(_STEPS + 1)])


def distance(found: Sequence[float], past: Sequence[Sequence[float]]) -> float:
    """The largest difference of the shares of values up to any bound (Kolmogorov and Smirnov), 0 to 1.

    Each of both is a sample of the distribution; those of ``past`` have the same weight.
    """
    now, before = sorted(found), sorted(chain.from_iterable(past))
    bounds = {*now, *before}
    shares = ((bisect_right(now, at) / len(now), bisect_right(before, at) / len(before)) for at in bounds)
    return max(abs(one - other) for one, other in shares)


def share_distance(found: Mapping[str, float], past: Sequence[Mapping[str, float]]) -> float:
    """Half of the sum of the differences of the shares of all values (total variation), 0 to 1.

    The values that are not among the most frequent ones count as one.
    """
    before = {value: sum(one.get(value, 0) for one in past) / len(past) for one in past for value in one}
    known = [(found.get(value, 0.0), before.get(value, 0.0)) for value in {*found, *before}]
    rest = (1 - sum(found.values()), 1 - sum(before.values()))
    return sum(abs(one - other) for one, other in [*known, rest]) / 2
