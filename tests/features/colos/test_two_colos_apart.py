"""Two installations on machines of their own, of which one fails, each in turn, while both are changed at random."""

from __future__ import annotations

import os
import time
from pathlib import Path
from random import Random

import pytest

from tests.features.colos.copying import Copying
from tests.features.colos.installations import network
from tests.features.colos.random_changes import Model
from tests.features.colos.soaking import FAULTS, Soak

pytestmark = pytest.mark.soak
SEED = int(os.environ.get("SIMULATION_SEED", "33"))
"""Of the changes."""


def test_two_colos_agree(postgres: str, tmp_path: Path) -> None:
    random = Random(SEED)
    with network(["us", "eu"], [], "10.91.8", tmp_path, postgres) as found:
        soak = Soak(found, Model([*found.colos], random))
        soak.ask(soak.model.begin())
        copying = Copying.started(found)
        for number, fault in enumerate(random.sample([*FAULTS], len(FAULTS))):
            copying.land()
            soak.round({["us", "eu"][number % 2]: fault}, 4)
        began = time.monotonic()
        copying.wait(600)
        print(f"all is copied after {time.monotonic() - began:.1f} s more")  # noqa: T201 - a measurement
        soak.settle()
        soak.check_history()
