"""Operations of a front of several colos."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from falcon_assets.errors import UsageError
from falcon_assets.model.access import Role
from falcon_assets.operations.installation import Installation
from falcon_assets.operations.operation import Operation, Result


@dataclass(frozen=True)
class ColoState(Result):
    """A colo as its front sees it.

    Attributes:
        problem: Why it cannot be asked; empty: it answers.
        version: Of falcon_assets; None: not known.
        revision: Of its database; None: not known.
        seconds: How long it took to answer; None: it did not.
        clock_difference: Seconds by which its clock is ahead of the front's, to about a second; None: not known.
        pending: How many entities it does not have yet as they are wanted.
        problems: Why not, or why it refused the last change, by entity.
    """

    name: str
    url: str
    problem: str
    version: str | None
    revision: str | None
    seconds: float | None
    clock_difference: float | None
    pending: int
    problems: tuple[str, ...] = ()

    @property
    def is_well(self) -> bool:
        return not self.problem and not self.pending


@dataclass(frozen=True)
class ColoStates(Result):
    """The colos of a front."""

    colos: tuple[ColoState, ...]

    @property
    def failed(self) -> bool:
        return not all(one.is_well for one in self.colos)


class ShowColos(Operation):
    """Show the colos of a front: whether they answer, their versions and clocks, and what they do not have yet.

    Ask the front for it: falcon --server URL admin colos. The exit code is 1 if a colo does not answer, or misses
    something.
    """

    command = "admin colos"
    role: ClassVar[Role] = Role.VIEWER

    def run(self, installation: Installation) -> ColoStates:
        """Raises UsageError: the front itself answers."""
        raise UsageError("only a front of several colos knows them: falcon --server URL admin colos")
