"""How many examples a property is tried with: a share of them in `make test`, all in `make soak`."""

from __future__ import annotations

from collections.abc import Collection

from hypothesis import HealthCheck, settings

QUICK, THOROUGH = "quick", "thorough"
"""Profiles; `--hypothesis-profile` chooses."""


def register_profiles() -> None:
    """Makes them known; the quick one holds unless another is asked for."""
    for name, share in ((QUICK, 25), (THOROUGH, 100)):
        # How long an example takes says more about the machine than about the code.
        settings.register_profile(name, max_examples=share, deadline=None)
    settings.load_profile(QUICK)


def examples(number: int, suppress: Collection[HealthCheck] = ()) -> settings:
    """What decorates a property that needs more or fewer examples than the others.

    Args:
        number: With so many it is tried where the others are with 100.
        suppress: Health checks that do not hold for it.
    """
    return settings(max_examples=max(1, number * settings().max_examples // 100), suppress_health_check=suppress)
