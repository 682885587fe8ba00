"""Five installations on machines of their own, which all fail at once, each in another way."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random

import pytest

from tests.features.colos.copying import Copying
from tests.features.colos.installations import network
from tests.features.colos.random_changes import Model
from tests.features.colos.soaking import FAULTS, Soak

pytestmark = pytest.mark.soak
SEED = int(os.environ.get("SIMULATION_SEED", "34"))
"""Of the changes."""
WHOLE, FRONTS = ["us", "eu"], ["ap", "sa", "af"]
"""Of the others only the fronts run: what is asked of them needs no more, and two processors have to do for all."""


def test_five_colos_have_all_that_was_asked_of_them(postgres: str, tmp_path: Path) -> None:
    with network(WHOLE, FRONTS, "10.91.9", tmp_path, postgres) as found:
        soak, names = Soak(found, Model([*found.colos], Random(SEED))), [*found.colos]
        soak.ask(soak.model.begin())
        copying = Copying.started(found)
        for first in range(2):
            copying.land()
            each = {name: [*FAULTS][(first + number) % len(FAULTS)] for number, name in enumerate(names)}
            soak.round(each, 5)
        copying.wait(600)
        soak.settle()
        soak.check_history()
